//! The open requests to people, over all threads: approvals, questions, unknown outcomes.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use perihelion_people::Scope;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::http::{Body, JsonResult, Query, Refusal};
use perihelion_engine::clock;
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_runtime::{Answer, InterruptView};
use perihelion_service::kept::ThreadFilter;
use perihelion_service::{Service, StatesOf, ThreadView};
use perihelion_star::question::kind;

/// Waiting threads that are looked through.
const MOST: u32 = 1_000;

async fn waiting(service: &Service) -> Result<Vec<ThreadView>, Refusal> {
    let filter = ThreadFilter {
        statuses: vec!["interrupted".into(), "busy".into(), "queued".into()],
        ascending: true,
        limit: MOST,
        ..ThreadFilter::default()
    };
    Ok(service.find_threads(&filter, StatesOf::None).await?.0)
}

fn shown(view: &ThreadView, one: &InterruptView, question: Option<&str>) -> Value {
    json!({
        "id": one.id,
        "thread_id": view.info.id,
        "title": view.info.shown_title(),
        "kind": one.kind,
        "agent": one.agent,
        "payload": one.payload,
        "question": question,
        "waiting_since": view.info.updated_at,
        // The name of earlier versions.
        "waits_since": view.info.updated_at,
    })
}

pub(super) async fn list(service: State<Service>) -> JsonResult {
    let mut all = Vec::new();
    for view in waiting(&service).await?.iter().filter(|view| !view.open.is_empty()) {
        let question = service.question_of(view).await?;
        all.extend(view.open.iter().map(|one| shown(view, one, question.as_deref())));
    }
    Ok(Json(Value::Array(all)))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Page {
    limit: Option<u32>,
    thread: Option<Uuid>,
}

/// Lists the requests and their results, newest first.
pub(super) async fn history(
    service: State<Service>,
    Query(Page { limit, thread }): Query<Page>,
) -> JsonResult {
    let requests = service.approvals(thread, limit).await?;
    Ok(Json(json!({ "requests": requests })))
}

async fn found(service: &Service, id: &str) -> Result<(ThreadView, InterruptView), Refusal> {
    if let Some(found) = service.asked(id).await? {
        return Ok(found);
    }
    let why = "no open request has this ID; it was answered, has expired, or never existed";
    Err(Refusal(StatusCode::CONFLICT, format!("{why}: {id}")))
}

pub(super) async fn get(service: State<Service>, Path(id): Path<String>) -> JsonResult {
    let (view, one) = found(&service, &id).await?;
    let question = service.question_of(&view).await?;
    Ok(Json(shown(&view, &one, question.as_deref())))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Given {
    decision: Option<String>,
    reason: Option<String>,
    /// Arguments that replace the ones that were shown.
    arguments: Option<Map<String, Value>>,
    answer: Option<Value>,
}

impl Given {
    fn approval(self) -> Answer {
        let Self { reason, arguments, .. } = self;
        match arguments {
            Some(arguments) => Answer::Edit { arguments, reason },
            None => Answer::Approve { reason },
        }
    }
}

pub(super) async fn approve(
    service: State<Service>,
    Path(id): Path<String>,
    Body(given): Body<Given>,
) -> JsonResult {
    decide(&service, &id, given.approval()).await
}

pub(super) async fn deny(
    service: State<Service>,
    Path(id): Path<String>,
    Body(Given { reason, .. }): Body<Given>,
) -> JsonResult {
    decide(&service, &id, Answer::Deny { reason }).await
}

pub(super) async fn answer(
    service: State<Service>,
    Path(id): Path<String>,
    Body(given): Body<Given>,
) -> JsonResult {
    let answer = match (given.decision.as_deref(), given.answer.clone()) {
        (Some("approve"), None) => given.approval(),
        (Some("deny"), None) => Answer::Deny { reason: given.reason },
        (None, Some(Value::String(text))) => Answer::Message(text),
        (None, Some(value)) => Answer::Value(value),
        _ => return Err(Refusal::invalid("send a decision (approve or deny) or an answer")),
    };
    decide(&service, &id, answer).await
}

async fn decide(service: &Service, id: &str, answer: Answer) -> JsonResult {
    let (view, one) = found(service, id).await?;
    let interrupt: InterruptId =
        one.id.parse().map_err(|_| Refusal::invalid("the ID must be a UUID"))?;
    let is_approval = one.kind == kind::APPROVAL;
    service.permit(if is_approval { Scope::Approve } else { Scope::Run })?;
    if !is_approval {
        service.user_on(view.info.id, None).await?;
    }
    // A text answers a question in words; any other kind takes it in its own form.
    let answer = match (one.kind.as_str(), answer) {
        (kind::CLARIFICATION, answer) => answer,
        (_, Answer::Message(text)) => Answer::Value(Value::String(text)),
        (_, answer) => answer,
    };
    let thread: ThreadId = view.info.id;
    let end = one.question().into_approval().expires_at();
    let run = service.answer(thread, interrupt, answer).await?;
    if let Some(end) = end.filter(|end| *end < clock::now()) {
        let why = format!(
            "the request expired at {end}, so the call was not sent; a new request follows"
        );
        return Err(Refusal(StatusCode::CONFLICT, why));
    }
    Ok(Json(json!({ "id": id, "thread_id": thread, "run_id": run.id })))
}
