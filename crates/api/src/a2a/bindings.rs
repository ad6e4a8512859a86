//! The bindings: JSON-RPC and REST.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::body::{Body, check_kind, parameters};
use super::refusal::Refusal;
use super::tasks::Send;
use super::{card, list, push, shapes, stream, tasks};
use crate::http::{Asked, JsonResult, Refusal as Plain};
use perihelion_engine::ids::ThreadId;
use perihelion_people::Scope;
use perihelion_service::Service;

pub(super) async fn call(
    service: State<Service>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let read = check_kind(&headers)
        .and_then(|()| crate::http::json(&body).map_err(|why| Refusal::Parse(why.to_owned())));
    let request = match read {
        Ok(request) => request,
        Err(refusal) => return Json(refusal.rpc(&Value::Null)).into_response(),
    };
    let id = request.get("id").filter(|id| id.is_string() || id.is_number());
    let id = id.cloned().unwrap_or_default();
    let checked = check_request(&request, &id).and_then(|()| check_version(&uri, &headers));
    let answered = match checked {
        Ok(()) => answer(service, headers, &request, &id).await,
        Err(refusal) => Err(refusal),
    };
    answered.unwrap_or_else(|refusal| Json(refusal.rpc(&id)).into_response())
}

/// Refuses what is no request of JSON-RPC; `id` is its ID, if that is a text or a number.
fn check_request(request: &Value, id: &Value) -> Result<(), Refusal> {
    let has_id = request.get("id").is_none_or(|given| given == id);
    if has_id && request["jsonrpc"] == "2.0" && request["method"].is_string() {
        Ok(())
    } else {
        Err(Refusal::InvalidRequest)
    }
}

/// Methods that begin, change or cancel something.
const CHANGES: [&str; 5] = [
    "SendMessage",
    "SendStreamingMessage",
    "CancelTask",
    "CreateTaskPushNotificationConfig",
    "DeleteTaskPushNotificationConfig",
];

async fn answer(
    service: State<Service>,
    headers: HeaderMap,
    request: &Value,
    id: &Value,
) -> Result<Response, Refusal> {
    let params = request.get("params").cloned().unwrap_or_else(|| json!({}));
    let named = |name: &str, other: &str| -> Result<String, Refusal> {
        let id = params.get(name).or_else(|| params.get(other)).and_then(Value::as_str);
        id.map(str::to_owned)
            .ok_or_else(|| Refusal::Invalid(format!("params.{name} must name a task")))
    };
    let id_of = || named("id", "id");
    let of_task = || named("taskId", "task_id");
    let method = request["method"].as_str().unwrap_or_default();
    if CHANGES.contains(&method) {
        service.permit(Scope::Run)?;
    }
    let Json(result) = match method {
        "SendMessage" => send(service, Body(parameters(params)?)).await?,
        "SendStreamingMessage" => {
            return stream::begin(&service, parameters(params)?, Some(id.clone())).await;
        }
        "SubscribeToTask" => return stream::join(&service, &id_of()?, Some(id.clone())).await,
        "GetTask" => {
            let task = tasks::found(&service, &id_of()?).await?;
            let shown: Shown = parameters(params)?;
            Json(shapes::short_task(&task, shown.history_length))
        }
        "CancelTask" => Json(shapes::task(&tasks::cancel(&service, &id_of()?).await?)),
        "ListTasks" => list::listed(service, Ok(Asked(parameters(params)?))).await?,
        "GetExtendedAgentCard" => card::extended(service, headers).await?,
        "CreateTaskPushNotificationConfig" => {
            let config: push::Config = parameters(params)?;
            let task = config.task_id.clone().unwrap_or_default();
            push::create(service, Path(task), Body(config)).await?
        }
        "GetTaskPushNotificationConfig" => push::get(service, Path((of_task()?, id_of()?))).await?,
        "ListTaskPushNotificationConfigs" => push::list(service, Path(of_task()?)).await?,
        "DeleteTaskPushNotificationConfig" => {
            push::delete(service, Path((of_task()?, id_of()?))).await?
        }
        other => return Err(Refusal::UnknownMethod(other.to_owned())),
    };
    Ok(Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response())
}

/// Names the version that a client speaks: a header, or a parameter of the address.
const VERSION: &str = "a2a-version";

/// The version for a client that names none.
const UNNAMED: &str = "0.3";

fn check_version(uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let header = headers.get(VERSION).and_then(|version| version.to_str().ok());
    let mut query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let parameter = query.find(|(name, _)| name.eq_ignore_ascii_case(VERSION));
    let named = header.map(str::to_owned).or(parameter.map(|(_, version)| version.into_owned()));
    let version = named.as_deref().map(str::trim).filter(|version| !version.is_empty());
    match version.unwrap_or(UNNAMED) {
        "1" | "1.0" => Ok(()),
        patch if patch.starts_with("1.0.") => Ok(()),
        other => Err(Refusal::Version(other.to_owned())),
    }
}

/// Checks the version of a request; a method that no route has is refused as such.
pub(super) async fn versioned(request: Request, next: Next) -> Result<Response, Refusal> {
    if [Method::GET, Method::HEAD, Method::POST, Method::DELETE].contains(request.method()) {
        check_version(request.uri(), request.headers())?;
    }
    Ok(next.run(request).await)
}

/// Begins a task and waits for it, unless it is to answer at once.
pub(super) async fn send(service: State<Service>, Body(send): Body<Send>) -> JsonResult<Refusal> {
    let at_once = send.configuration.return_immediately;
    let messages = send.configuration.history_length;
    let (run, task) = tasks::begin(&service, send).await?;
    if !at_once {
        service.ended(ThreadId(run.thread), run.id).await?;
    }
    let task = tasks::found(&service, &task.to_string()).await?;
    Ok(Json(json!({ "task": shapes::short_task(&task, messages) })))
}

pub(super) async fn stream(
    service: State<Service>,
    Body(send): Body<Send>,
) -> Result<Response, Refusal> {
    stream::begin(&service, send, None).await
}

/// How much of a task is shown.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Shown {
    /// How many of its newest messages; all by default.
    #[serde(alias = "history_length")]
    pub history_length: Option<u32>,
}

pub(super) async fn get_or_follow(
    service: State<Service>,
    Path(named): Path<String>,
    shown: Result<Asked<Shown>, Plain>,
) -> Result<Response, Refusal> {
    let Asked(shown) = shown?;
    if let Some(id) = named.strip_suffix(":subscribe") {
        return stream::join(&service, id, None).await;
    }
    let task = tasks::found(&service, &named).await?;
    Ok(Json(shapes::short_task(&task, shown.history_length)).into_response())
}

/// The actions at a task's address, which its ending selects.
pub(super) async fn allowed(Path(named): Path<String>) -> Response {
    let methods = match named.split_once(':') {
        Some((_, "cancel")) => "POST",
        Some((_, "subscribe")) => "GET,HEAD,POST",
        _ => "GET,HEAD",
    };
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, methods)]).into_response()
}

pub(super) async fn act(
    service: State<Service>,
    Path(named): Path<String>,
) -> Result<Response, Refusal> {
    match named.split_once(':') {
        Some((id, "cancel")) => {
            Ok(Json(shapes::task(&tasks::cancel(&service, id).await?)).into_response())
        }
        Some((id, "subscribe")) => stream::join(&service, id, None).await,
        _ => Err(Refusal::UnknownMethod(named)),
    }
}
