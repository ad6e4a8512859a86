//! The REST binding.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::tasks::{self, Send};
use super::{card, list, push, shapes, stream};
use crate::agent_server;
use perihelion_engine::ids::ThreadId;
use perihelion_service::Service;

/// Refuses a client that speaks another version.
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    let named = headers
        .get("a2a-version")
        .and_then(|version| version.to_str().ok())
        .unwrap_or("1.0")
        .trim();
    if named.is_empty() || named == "1" || named.starts_with("1.0") {
        Ok(())
    } else {
        Err(Refusal::Version(named.to_owned()))
    }
}

/// Refuses a body that says it is something else than JSON.
pub(super) fn check_kind(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let named = kind.to_str().unwrap_or_default();
    let kind = named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "application/json" || kind.ends_with("+json") {
        Ok(())
    } else {
        Err(Refusal::ContentType(format!("a body is JSON, and not {named}")))
    }
}

fn read<T: serde::de::DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, Refusal> {
    check_kind(headers)?;
    let read = agent_server::json(body).map_err(|why| Refusal::Invalid(why.to_owned()))?;
    serde_json::from_value(read).map_err(|error| Refusal::Invalid(error.to_string()))
}

/// Begins a task and waits for it, unless it is to answer at once.
pub(super) async fn sent(service: &Service, send: Send) -> Result<Value, Refusal> {
    let at_once = send.configuration.return_immediately;
    let messages = send.configuration.history_length;
    let (run, task) = tasks::begin(service, send).await?;
    if !at_once {
        service.ended(ThreadId(run.thread), run.id).await?;
    }
    let task = tasks::found(service, &task.to_string()).await?;
    Ok(json!({ "task": shapes::short_task(&task, messages) }))
}

pub(super) async fn send(
    State(service): State<Service>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    check_version(&headers)?;
    Ok(Json(sent(&service, read(&headers, &body)?).await?))
}

pub(super) async fn stream(
    State(service): State<Service>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    check_version(&headers)?;
    let (run, task) = tasks::begin(&service, read(&headers, &body)?).await?;
    let task = tasks::found(&service, &task.to_string()).await?;
    stream::follow(&service, run, task, None).await
}

pub(super) async fn extended_card(
    State(service): State<Service>,
    headers: HeaderMap,
) -> Result<Json<Value>, Refusal> {
    check_version(&headers)?;
    Ok(Json(card::extended(&service, &headers).await?))
}

pub(super) async fn tasks(
    State(service): State<Service>,
    headers: HeaderMap,
    list: Result<Query<list::List>, QueryRejection>,
) -> Result<Json<Value>, Refusal> {
    check_version(&headers)?;
    let Query(list) = list.map_err(|error| Refusal::Invalid(error.body_text()))?;
    Ok(Json(list::listed(&service, &list).await?))
}

/// How much of a task is shown.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Shown {
    /// How many of its newest messages; none: all.
    #[serde(alias = "history_length")]
    pub history_length: Option<u32>,
}

pub(super) async fn get_or_follow(
    State(service): State<Service>,
    headers: HeaderMap,
    Path(named): Path<String>,
    shown: Result<Query<Shown>, QueryRejection>,
) -> Result<Response, Refusal> {
    check_version(&headers)?;
    if let Some(id) = named.strip_suffix(":subscribe") {
        return stream::join(&service, id, None).await;
    }
    let Query(shown) = shown.map_err(|error| Refusal::Invalid(error.body_text()))?;
    let task = tasks::found(&service, &named).await?;
    Ok(Json(shapes::short_task(&task, shown.history_length)).into_response())
}

/// Says what may be done at a task's address, which its ending decides.
pub(super) async fn allowed(Path(named): Path<String>) -> Response {
    let methods = match named.split_once(':') {
        Some((_, "cancel")) => "POST",
        Some((_, "subscribe")) => "GET,HEAD,POST",
        _ => "GET,HEAD",
    };
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, methods)]).into_response()
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
    Ok(Json(push::create(&service, &task, read(&headers, &body)?).await?))
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
