//! The REST binding.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::tasks::{self, Send};
use super::{push, shapes, stream};
use crate::api::agent_server;
use crate::ids::ThreadId;
use crate::service::Service;
use crate::service::kept::RunFilter;

/// Refuses a client that speaks another version.
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    let named = headers
        .get("a2a-version")
        .and_then(|version| version.to_str().ok())
        .unwrap_or("1.0")
        .trim();
    match named.is_empty() || named == "1" || named.starts_with("1.0") {
        true => Ok(()),
        false => Err(Refusal::Version(named.to_owned())),
    }
}

fn read(body: &[u8]) -> Result<Send, Refusal> {
    from(body)
}

fn from<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let read = agent_server::json(body).map_err(|why| Refusal::Invalid(why.to_owned()))?;
    serde_json::from_value(read).map_err(|error| Refusal::Invalid(error.to_string()))
}

/// Begins a task and waits for it, unless it is to answer at once.
pub(super) async fn sent(service: &Service, send: Send) -> Result<Value, Refusal> {
    let at_once = send.configuration.return_immediately;
    let (run, task) = tasks::begin(service, send).await?;
    if !at_once {
        service.ended(ThreadId(run.thread), run.id).await?;
    }
    let task = tasks::found(service, &task.to_string()).await?;
    Ok(json!({ "task": shapes::task(&task) }))
}

pub(super) async fn send(
    State(service): State<Service>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    check_version(&headers)?;
    Ok(Json(sent(&service, read(&body)?).await?))
}

pub(super) async fn stream(
    State(service): State<Service>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    check_version(&headers)?;
    let (run, task) = tasks::begin(&service, read(&body)?).await?;
    let task = tasks::found(&service, &task.to_string()).await?;
    stream::follow(&service, run, task, None).await
}

/// Which tasks are listed.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct List {
    context_id: Option<String>,
    status: Option<String>,
    page_size: Option<u32>,
    page_token: Option<String>,
}

/// Lists the tasks of a context, newest first.
pub(super) async fn listed(service: &Service, list: &List) -> Result<Value, Refusal> {
    let Some(context) = &list.context_id else {
        return Ok(json!({ "tasks": [], "nextPageToken": "", "pageSize": 0, "totalSize": 0 }));
    };
    let (thread, _) = ThreadId::from_name(context);
    let filter = RunFilter { status: None, limit: 1_000, offset: 0 };
    let mut found = Vec::new();
    for run in service.kept().runs(thread.0, &filter).await? {
        let is_first = run.metadata["a2a"].is_object() && run.metadata["a2a"]["task"].is_null();
        if is_first {
            let task = tasks::of_run(service, &run).await?;
            if list.status.as_ref().is_none_or(|status| status == task.state.word()) {
                found.push(shapes::task(&task));
            }
        }
    }
    let total = found.len();
    let size = list.page_size.unwrap_or(50).clamp(1, 100) as usize;
    let start: usize = list.page_token.as_deref().and_then(|token| token.parse().ok()).unwrap_or(0);
    let page: Vec<Value> = found.into_iter().skip(start).take(size).collect();
    let next = start + page.len();
    let token = if next < total { next.to_string() } else { String::new() };
    Ok(json!({ "tasks": page, "nextPageToken": token, "pageSize": size, "totalSize": total }))
}

pub(super) async fn list(
    State(service): State<Service>,
    headers: HeaderMap,
    list: Result<Query<List>, QueryRejection>,
) -> Result<Json<Value>, Refusal> {
    check_version(&headers)?;
    let Query(list) = list.map_err(|error| Refusal::Invalid(error.body_text()))?;
    Ok(Json(listed(&service, &list).await?))
}

pub(super) async fn get_or_follow(
    State(service): State<Service>,
    headers: HeaderMap,
    Path(named): Path<String>,
) -> Result<Response, Refusal> {
    check_version(&headers)?;
    match named.strip_suffix(":subscribe") {
        Some(id) => stream::join(&service, id, None).await,
        None => Ok(Json(shapes::task(&tasks::found(&service, &named).await?)).into_response()),
    }
}

/// Says what may be done at a task's address, which its ending decides.
pub(super) async fn allowed(Path(named): Path<String>) -> Response {
    let methods = match named.split_once(':') {
        Some((_, "cancel")) => "POST",
        Some((_, "subscribe")) => "GET,HEAD,POST",
        _ => "GET,HEAD",
    };
    (StatusCode::METHOD_NOT_ALLOWED, [(axum::http::header::ALLOW, methods)]).into_response()
}

pub(super) async fn pushes(
    State(service): State<Service>,
    headers: HeaderMap,
    Path(task): Path<String>,
) -> Result<Json<Value>, Refusal> {
    check_version(&headers)?;
    Ok(Json(push::list(&service, &task).await?))
}

pub(super) async fn add_push(
    State(service): State<Service>,
    headers: HeaderMap,
    Path(task): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    check_version(&headers)?;
    Ok(Json(push::create(&service, &task, from(&body)?).await?))
}

pub(super) async fn push(
    State(service): State<Service>,
    headers: HeaderMap,
    Path((task, id)): Path<(String, String)>,
) -> Result<Json<Value>, Refusal> {
    check_version(&headers)?;
    Ok(Json(push::get(&service, &task, &id).await?))
}

pub(super) async fn delete_push(
    State(service): State<Service>,
    headers: HeaderMap,
    Path((task, id)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    check_version(&headers)?;
    push::delete(&service, &task, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn act(
    State(service): State<Service>,
    headers: HeaderMap,
    Path(named): Path<String>,
) -> Result<Response, Refusal> {
    check_version(&headers)?;
    match named.split_once(':') {
        Some((id, "cancel")) => {
            Ok(Json(shapes::task(&tasks::cancel(&service, id).await?)).into_response())
        }
        Some((id, "subscribe")) => stream::join(&service, id, None).await,
        _ => Err(Refusal::UnknownMethod(named)),
    }
}
