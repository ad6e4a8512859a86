//! Commands: runs begun, questions answered, states read and returned to.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::accept::accept;
use super::super::state::step_of;
use super::super::{AppState, Refusal, wire};
use crate::http::{Body, JsonResult, OfThread};
use perihelion_engine::ids::ThreadId;
use perihelion_service::{CheckpointIds, ClientStatus, Error, ThreadView};

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

    pub(super) fn invalid(message: impl ToString) -> Self {
        Self::new("invalid_argument", message.to_string())
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
    app: State<AppState>,
    OfThread(thread): OfThread,
    Body(command): Body<Command>,
) -> JsonResult {
    Ok(Json(answered(&app, thread, &command).await))
}

pub(super) async fn answered(app: &AppState, thread: ThreadId, command: &Command) -> Value {
    match carried_out(app, thread, command).await {
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

async fn carried_out(
    app: &AppState,
    thread: ThreadId,
    command: &Command,
) -> Result<Value, Refused> {
    let params = &command.params;
    match command.method.as_str() {
        "run.start" => {
            let mut body = Value::Object(params.clone());
            body["if_not_exists"] = json!("create");
            begin(app, thread, body).await
        }
        "input.respond" => respond(app, thread, params).await,
        "input.inject" => {
            let message = params.get("message").ok_or_else(|| Refused::lacking("message"))?;
            let assistant = assistant_of(app, thread).await?;
            let body = json!({ "assistant_id": assistant, "input": { "messages": [message] } });
            begin(app, thread, body).await?;
            Ok(json!({}))
        }
        "state.get" => {
            let view = app.service.thread(thread).await?;
            let ids = app.service.checkpoint_ids(thread).await?;
            Ok(state(&ids, &view, params.get("keys")))
        }
        "state.listCheckpoints" => checkpoints(app, thread, params).await,
        "state.fork" => {
            let at = params.get("checkpoint_id").and_then(Value::as_str);
            let at = at.ok_or_else(|| Refused::lacking("checkpoint_id"))?;
            step_of(app, thread, at).await?;
            let mut body =
                json!({ "assistant_id": assistant_of(app, thread).await?, "checkpoint_id": at });
            for name in ["input", "config"] {
                body[name] = params.get(name).cloned().unwrap_or(Value::Null);
            }
            let mut begun = begin(app, thread, body).await?;
            begun["thread_id"] = json!(thread);
            Ok(begun)
        }
        "agent.getTree" => {
            let view = app.service.thread(thread).await?;
            let status = match view.status {
                ClientStatus::Idle => "completed",
                ClientStatus::Busy => "running",
                ClientStatus::Interrupted => "interrupted",
                ClientStatus::Error => "failed",
            };
            Ok(
                json!({ "tree": { "namespace": [], "status": status, "graph_name": view.info.graph } }),
            )
        }
        method if method.starts_with("subscription.") => Err(Refused::new(
            "not_supported",
            "subscriptions need a WebSocket; for server-sent events, pass the channels in the request",
        )),
        other => Err(Refused::new("unknown_command", format!("unknown command: {other}"))),
    }
}

async fn begin(app: &AppState, thread: ThreadId, body: Value) -> Result<Value, Refused> {
    let accepted = accept(app, Some(thread), wire::RunBody::read(&body)?, true).await?;
    Ok(json!({ "run_id": accepted.run.id }))
}

async fn assistant_of(app: &AppState, thread: ThreadId) -> Result<String, Refused> {
    let info = app.service.info(thread).await?;
    let noted = app.service.kept().thread_meta(thread.0).await.map_err(Error::from)?;
    let noted = noted.metadata["assistant_id"].as_str().map(str::to_owned);
    Ok(noted.unwrap_or(info.graph))
}

async fn respond(
    app: &AppState,
    thread: ThreadId,
    params: &Map<String, Value>,
) -> Result<Value, Refused> {
    let one = [Value::Object(params.clone())];
    let entries = match params.get("responses") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(_) => return Err(Refused::invalid("params.responses must be a list")),
        None => &one,
    };
    let open = app.service.thread(thread).await?.open;
    let mut resume = Map::new();
    for entry in entries {
        let id = entry.get("interrupt_id").and_then(Value::as_str);
        let id = id.ok_or_else(|| Refused::lacking("interrupt_id"))?;
        if open.iter().all(|question| question.id != id) {
            let why = format!("no open question has this ID: {id}");
            return Err(Refused::new("no_such_interrupt", why));
        }
        let response = entry.get("response").ok_or_else(|| Refused::lacking("response"))?;
        resume.insert(id.to_owned(), response.clone());
    }
    let mut body = json!({
        "assistant_id": assistant_of(app, thread).await?, "input": {}, "command": { "resume": resume },
    });
    for name in ["config", "metadata"] {
        body[name] = params.get(name).cloned().unwrap_or(Value::Null);
    }
    begin(app, thread, body).await?;
    Ok(json!({}))
}

fn state(ids: &CheckpointIds, view: &ThreadView, keys: Option<&Value>) -> Value {
    let mut values = view.state.as_ref().map_or_else(|| json!({}), wire::values);
    if let (Some(keys), Some(fields)) = (keys.and_then(Value::as_array), values.as_object_mut()) {
        fields.retain(|name, _| keys.iter().any(|key| key == name.as_str()));
    }
    let mut shown = json!({ "values": values });
    if view.info.head > 0 {
        shown["checkpoint"] = json!({ "id": ids.id(view.info.head) });
    }
    shown
}

async fn checkpoints(
    app: &AppState,
    thread: ThreadId,
    params: &Map<String, Value>,
) -> Result<Value, Refused> {
    app.service.info(thread).await?;
    let before = match params.get("before").and_then(Value::as_str) {
        None => None,
        Some(id) => Some(step_of(app, thread, id).await?),
    };
    let limit = params.get("limit").and_then(Value::as_u64).unwrap_or(10).clamp(1, MOST);
    let store = app.service.runtime().store();
    let rows = store.history(thread, before, limit as u32).await.map_err(Error::from)?;
    let ids = app.service.checkpoint_ids(thread).await?;
    let runs = app.service.runs_of_steps(&ids, &rows).await?;
    let shown = rows.iter().zip(runs).map(|(row, run)| {
        json!({
            "id": ids.id(row.seq),
            "timestamp": row.at,
            "step": row.seq,
            "metadata": { "source": wire::source(row), "run_id": run.map(|run| run.id) },
        })
    });
    Ok(json!({ "checkpoints": shown.collect::<Vec<_>>() }))
}
