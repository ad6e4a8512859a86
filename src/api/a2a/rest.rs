//! The REST binding.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::tasks::{self, Send};
use super::{shapes, stream};
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
    serde_json::from_slice(body).map_err(|error| Refusal::Invalid(error.to_string()))
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
#[derive(Default, Deserialize)]
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
    Query(list): Query<List>,
) -> Result<Json<Value>, Refusal> {
    check_version(&headers)?;
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
