//! Clients' messages before the library reads them: a malformed one gets a JSON-RPC error, and a cancellation stops its
//! run.
//!
//! The server stores no sessions, so a call can be cancelled through any process: its run's metadata has the client's
//! session, the user and the ID of the request.

use std::time::Duration;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{Refusal, is_json};
use perihelion_engine::clock;
use perihelion_people::Scope;
use perihelion_service::Service;
use perihelion_service::kept::Cancel;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Bytes of a message at most, as the library has it.
const LONGEST: usize = 4 << 20;

/// Open runs that are read at a time to find the one to cancel.
const PAGE: u32 = 64;

/// How often the run of a cancelled call is looked for: it may not have begun yet.
const TRIES: u32 = 5;

/// The time between two of these.
const PAUSE: Duration = Duration::from_millis(100);

/// Requests whose parameters the library checks by their types.
const KNOWN: [&str; 5] =
    ["initialize", "server/discover", "tools/call", "tools/list", "completion/complete"];

/// Reads each message, and passes those on that are well-formed requests.
pub(super) async fn read(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    if request.method() != Method::POST || !is_json(request.headers()) {
        return Ok(next.run(request).await);
    }
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, LONGEST).await.map_err(|_| {
        let why = format!("the message has more than {LONGEST} bytes");
        Refusal(StatusCode::PAYLOAD_TOO_LARGE, why)
    })?;
    let message = match checked(&bytes) {
        Ok(message) => message,
        Err(refused) => {
            let answer = json!({ "jsonrpc": "2.0", "id": refused.0, "error": refused.1 });
            return Ok((StatusCode::BAD_REQUEST, Json(answer)).into_response());
        }
    };
    if message["method"] == "notifications/cancelled" {
        service.permit(Scope::Run)?;
        cancel(&service, &call_key(&service, &parts.headers, &message["params"]["requestId"]))
            .await?;
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    let mut response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    let session = HeaderValue::from_str(&Uuid::new_v4().to_string());
    if let (true, Ok(session)) = (message["method"] == "initialize", session) {
        response.headers_mut().insert(SESSION, session);
    }
    Ok(response)
}

pub(super) fn call_key(service: &Service, headers: &HeaderMap, request: &Value) -> Value {
    let session = headers.get(SESSION).and_then(|session| session.to_str().ok());
    json!({ "session": session, "user": service.who().user, "request": request })
}

/// Stops the run of a call, if there is exactly one active run.
async fn cancel(service: &Service, call: &Value) -> Result<(), Refusal> {
    for _ in 0..TRIES {
        let mut runs = Vec::new();
        let mut after = None;
        loop {
            let page = service.kept().open_runs_of_tenant(clock::now(), after, PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            after = page.last().map(|run| run.id);
            runs.extend(page.into_iter().filter(|run| run.metadata["mcp"] == *call));
            if is_last {
                break;
            }
        }
        match runs.as_slice() {
            [] => clock::sleep(PAUSE).await,
            [run] => {
                service.cancel(run, Cancel::Interrupt).await?;
                break;
            }
            // Clients without sessions may number their calls alike.
            _ => break,
        }
    }
    Ok(())
}

fn checked(bytes: &[u8]) -> Result<Value, Box<(Value, ErrorData)>> {
    let message = crate::http::json(bytes)
        .map_err(|why| Box::new((Value::Null, ErrorData::parse_error(why, None))))?;
    let id = match &message["id"] {
        id @ (Value::Number(_) | Value::String(_)) => id.clone(),
        _ => Value::Null,
    };
    let refused = |error: ErrorData| Err(Box::new((id.clone(), error)));
    let invalid = |why: &str| refused(ErrorData::invalid_request(why.to_owned(), None));
    if message.is_array() {
        return invalid("batches are not supported: send one message in each request");
    }
    if message["jsonrpc"] != "2.0" {
        return invalid("a message is an object with \"jsonrpc\": \"2.0\"");
    }
    let is_answer = message.get("result").is_some() || message.get("error").is_some();
    let Some(method) = message["method"].as_str() else {
        return if is_answer { Ok(message) } else { invalid("a request needs a method") };
    };
    if message.get("id").is_some() && id.is_null() {
        return invalid("the ID of a request must be a text or an integer");
    }
    let unusable = |why: String| refused(ErrorData::new(ErrorCode::INVALID_PARAMS, why, None));
    if message.get("params").is_some_and(|params| !params.is_object()) {
        return unusable(format!("the parameters of {method} must be an object"));
    }
    match serde_json::from_value(message.clone()) {
        Ok(ClientJsonRpcMessage::Request(request)) => match &request.request {
            ClientRequest::CustomRequest(custom) if KNOWN.contains(&custom.method.as_str()) => {
                unusable(format!("the parameters of {method} are not valid"))
            }
            _ => Ok(message),
        },
        Ok(_) => Ok(message),
        Err(error) => unusable(format!("the message {method} is not valid: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_message_is_refused_by_its_code_and_with_its_id() {
        for (text, id, code) in [
            ("{", Value::Null, -32700),
            ("[]", Value::Null, -32600),
            ("7", Value::Null, -32600),
            (r#"{"id":1,"method":"ping"}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}"#, json!("a"), -32602),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, json!(1), -32602),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, json!(1.5), -32602),
        ] {
            let refused = checked(text.as_bytes()).unwrap_err();
            assert_eq!((refused.0, refused.1.code.0), (id, code), "{text}");
        }
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"nothing/known"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        ] {
            checked(text.as_bytes()).unwrap();
        }
    }
}
