//! Commands: runs begun, questions answered, states read and returned to.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::accept::accept;
use super::super::body::{Body, OfThread};
use super::super::{Face, Refusal, wire};
use perihelion_engine::ids::ThreadId;
use perihelion_service::{ClientStatus, Error, ThreadView};
use perihelion_star::GRAPH;

/// Checkpoints of one answer at most.
const MOST: u64 = 1_000;

/// A command.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(in crate::agent_server) struct Command {
    pub id: u64,
    pub method: String,
    #[serde(default)]
    pub params: Map<String, Value>,
}

/// Why a command was refused.
pub(super) struct Refused {
    code: &'static str,
    message: String,
}

impl Refused {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    fn lacking(what: &str) -> Self {
        Self::new("invalid_argument", format!("params.{what} is required"))
    }

    pub(super) fn unknown_subscription() -> Self {
        Self::new("no_such_subscription", "this socket has no such subscription")
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid_argument", message)
    }
}

impl From<Refusal> for Refused {
    fn from(Refusal(status, message): Refusal) -> Self {
        let code = match status {
            StatusCode::FORBIDDEN => "permission_denied",
            status if status.is_server_error() => "unknown_error",
            _ => "invalid_argument",
        };
        Self::new(code, message)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        match error {
            Error::UnknownCheckpoint(_) => Self::new("no_such_checkpoint", error.to_string()),
            error => Refusal::from(error).into(),
        }
    }
}

pub(in crate::agent_server) async fn post(
    State(face): State<Face>,
    OfThread(thread): OfThread,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let command: Command = body.read()?;
    Ok(Json(answered(&face, thread, &command).await))
}

/// Carries a command out and shows how it went.
pub(super) async fn answered(face: &Face, thread: ThreadId, command: &Command) -> Value {
    match carried_out(face, thread, command).await {
        Ok(result) => success(command.id, result),
        Err(refused) => failure(Some(command.id), &refused),
    }
}

pub(super) fn success(id: u64, result: Value) -> Value {
    json!({ "type": "success", "id": id, "result": result, "meta": { "applied_through_seq": 0 } })
}

pub(super) fn failure(id: Option<u64>, refused: &Refused) -> Value {
    json!({ "type": "error", "id": id, "error": refused.code, "message": refused.message })
}

async fn carried_out(face: &Face, thread: ThreadId, command: &Command) -> Result<Value, Refused> {
    let params = &command.params;
    match command.method.as_str() {
        "run.start" => {
            let mut body = Value::Object(params.clone());
            body["if_not_exists"] = json!("create");
            begin(face, thread, body).await
        }
        "input.respond" => respond(face, thread, params).await,
        "input.inject" => {
            let message = params.get("message").ok_or_else(|| Refused::lacking("message"))?;
            let assistant = assistant_of(face, thread).await?;
            let body = json!({ "assistant_id": assistant, "input": { "messages": [message] } });
            begin(face, thread, body).await?;
            Ok(json!({}))
        }
        "state.get" => {
            let view = face.service.thread(thread).await?;
            Ok(state(thread, &view, params.get("keys")))
        }
        "state.listCheckpoints" => checkpoints(face, thread, params).await,
        "state.fork" => {
            let at = params.get("checkpoint_id").and_then(Value::as_str);
            let at = at.ok_or_else(|| Refused::lacking("checkpoint_id"))?;
            if wire::step_of(thread, at).is_none() {
                return Err(Error::UnknownCheckpoint(at.to_owned()).into());
            }
            let mut body =
                json!({ "assistant_id": assistant_of(face, thread).await?, "checkpoint_id": at });
            for name in ["input", "config"] {
                body[name] = params.get(name).cloned().unwrap_or(Value::Null);
            }
            let mut begun = begin(face, thread, body).await?;
            begun["thread_id"] = json!(thread);
            Ok(begun)
        }
        "agent.getTree" => {
            let view = face.service.thread(thread).await?;
            let status = match view.status {
                ClientStatus::Idle => "completed",
                ClientStatus::Busy => "running",
                ClientStatus::Interrupted => "interrupted",
                ClientStatus::Error => "failed",
            };
            Ok(json!({ "tree": { "namespace": [], "status": status, "graph_name": GRAPH } }))
        }
        method if method.starts_with("subscription.") => Err(Refused::new(
            "not_supported",
            "subscriptions are made over a WebSocket; otherwise each stream names its channels",
        )),
        other => Err(Refused::new("unknown_command", format!("unknown command: {other}"))),
    }
}

async fn begin(face: &Face, thread: ThreadId, body: Value) -> Result<Value, Refused> {
    let accepted = accept(face, Some(thread), &body, true).await?;
    Ok(json!({ "run_id": accepted.run.id }))
}

/// Returns the assistant that a thread was run by last.
async fn assistant_of(face: &Face, thread: ThreadId) -> Result<String, Refused> {
    face.service.info(thread).await?;
    let noted = face.service.kept().thread_meta(thread.0).await.map_err(Error::from)?;
    let noted = noted.metadata["assistant_id"].as_str().map(str::to_owned);
    Ok(noted.unwrap_or_else(|| GRAPH.to_owned()))
}

/// Answers open questions, one or several.
async fn respond(
    face: &Face,
    thread: ThreadId,
    params: &Map<String, Value>,
) -> Result<Value, Refused> {
    let one = [Value::Object(params.clone())];
    let entries = match params.get("responses") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(_) => return Err(Refused::invalid("params.responses must be a list")),
        None => &one,
    };
    let open = face.service.thread(thread).await?.open;
    let mut resume = Map::new();
    for entry in entries {
        let id = entry.get("interrupt_id").and_then(Value::as_str);
        let id = id.ok_or_else(|| Refused::lacking("interrupt_id"))?;
        if open.iter().all(|question| question.id != id) {
            let why = format!("nothing of this id waits for an answer: {id}");
            return Err(Refused::new("no_such_interrupt", why));
        }
        let response = entry.get("response").ok_or_else(|| Refused::lacking("response"))?;
        resume.insert(id.to_owned(), response.clone());
    }
    let mut body = json!({
        "assistant_id": assistant_of(face, thread).await?, "input": {}, "command": { "resume": resume },
    });
    for name in ["config", "metadata"] {
        body[name] = params.get(name).cloned().unwrap_or(Value::Null);
    }
    begin(face, thread, body).await?;
    Ok(json!({}))
}

fn state(thread: ThreadId, view: &ThreadView, keys: Option<&Value>) -> Value {
    let mut values = view.state.as_deref().map_or_else(|| json!({}), wire::values);
    if let (Some(keys), Some(fields)) = (keys.and_then(Value::as_array), values.as_object_mut()) {
        fields.retain(|name, _| keys.iter().any(|key| key == name.as_str()));
    }
    let mut shown = json!({ "values": values });
    if view.info.head > 0 {
        shown["checkpoint"] = json!({ "id": wire::checkpoint_id(thread, view.info.head) });
    }
    shown
}

async fn checkpoints(
    face: &Face,
    thread: ThreadId,
    params: &Map<String, Value>,
) -> Result<Value, Refused> {
    face.service.info(thread).await?;
    let before = match params.get("before").and_then(Value::as_str) {
        None => None,
        Some(id) => Some(
            wire::step_of(thread, id)
                .ok_or_else(|| Refused::from(Error::UnknownCheckpoint(id.to_owned())))?,
        ),
    };
    let limit = params.get("limit").and_then(Value::as_u64).unwrap_or(10).clamp(1, MOST);
    let store = face.service.runtime().store();
    let rows = store.history(thread, before, limit as u32).await.map_err(Error::from)?;
    let shown = rows.iter().map(|row| {
        json!({
            "id": wire::checkpoint_id(thread, row.seq),
            "timestamp": row.at,
            "step": row.seq,
            "metadata": { "source": wire::made_by(row), "run_id": row.run },
        })
    });
    Ok(json!({ "checkpoints": shown.collect::<Vec<_>>() }))
}
