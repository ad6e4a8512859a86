//! Threads: made, found, changed, copied, deleted.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::body::{Body, Object, OfThread};
use super::wire::{self, Fields};
use super::{Face, Refusal};
use crate::api::openapi::Forms;
use crate::clock;
use crate::ids::ThreadId;
use crate::service::Error;
use crate::service::kept::{ThreadFilter, ThreadOrder};
use crate::swarm::GRAPH;

/// Threads of one answer at most.
const MOST: u32 = 1_000;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Create {
    thread_id: Option<Uuid>,
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    metadata: Option<Value>,
    if_exists: Option<IfExists>,
    supersteps: Vec<Object<Superstep>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum IfExists {
    Raise,
    DoNothing,
}

/// A step that a client writes into a new thread.
#[derive(Deserialize, JsonSchema)]
struct Superstep {
    updates: Vec<Object<StateUpdate>>,
}

#[derive(Deserialize, JsonSchema)]
struct StateUpdate {
    #[serde(default)]
    values: Value,
    as_node: Option<String>,
}

pub(super) async fn create(State(face): State<Face>, body: Body) -> Result<Json<Value>, Refusal> {
    let create: Create = body.read()?;
    let thread = create.thread_id.map_or_else(ThreadId::new, ThreadId);
    let metadata = object(create.metadata, "metadata")?;
    let is_there = match face.service.info(thread).await {
        Ok(_) => true,
        Err(Error::UnknownThread(_)) => false,
        Err(error) => return Err(error.into()),
    };
    if is_there && create.if_exists != Some(IfExists::DoNothing) {
        return Err(Refusal(
            StatusCode::CONFLICT,
            format!("Thread with ID {thread} already exists"),
        ));
    }
    if !is_there {
        let mut steps = Vec::new();
        for Object(update) in create.supersteps.iter().flat_map(|Object(step)| &step.updates) {
            let written = wire::state_update(&update.values, 0).map_err(Refusal::invalid)?;
            steps.push((update, written));
        }
        face.service.create_thread(thread, &metadata).await?;
        for (update, written) in steps {
            face.service.runtime().edit(thread, written, update.as_node.as_deref(), &[]).await?;
        }
    }
    get_shown(&face, thread, &Fields::default()).await
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Search {
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    metadata: Option<Value>,
    status: Option<String>,
    ids: Option<Vec<Uuid>>,
    /// Words that the title has; beside what the protocol knows.
    title: Option<String>,
    limit: Option<u32>,
    offset: Option<u32>,
    sort_by: Option<String>,
    sort_order: Option<String>,
    select: Option<Vec<String>>,
}

impl Search {
    fn filter(self) -> Result<(ThreadFilter, Fields), Refusal> {
        let statuses: &[&str] = match self.status.as_deref() {
            None => &[],
            Some("idle") => &["idle"],
            Some("busy") => &["busy", "queued"],
            Some("interrupted") => &["interrupted", "stopped"],
            Some("error") => &["failed", "parked"],
            Some(other) => {
                let known = "idle, busy, interrupted or error";
                return Err(Refusal::invalid(format!("status must be {known}: {other}")));
            }
        };
        let order = match self.sort_by.as_deref() {
            None | Some("updated_at" | "state_updated_at") => ThreadOrder::Updated,
            Some("created_at") => ThreadOrder::Created,
            Some("thread_id") => ThreadOrder::Id,
            Some("status") => ThreadOrder::Status,
            Some(other) => {
                return Err(Refusal::invalid(format!("threads cannot be sorted by: {other}")));
            }
        };
        let filter = ThreadFilter {
            graphs: vec![GRAPH.to_owned()],
            ids: self.ids.unwrap_or_default(),
            metadata: object(self.metadata, "metadata")?,
            statuses: statuses.iter().map(|word| (*word).to_owned()).collect(),
            order,
            ascending: self.sort_order.is_some_and(|order| order.eq_ignore_ascii_case("asc")),
            limit: self.limit.unwrap_or(10).clamp(1, MOST),
            offset: self.offset.unwrap_or(0),
        };
        Ok((filter, Fields(self.select.unwrap_or_default())))
    }
}

pub(super) async fn search(State(face): State<Face>, body: Body) -> Result<Response, Refusal> {
    let mut search = body.read::<Search>()?;
    let title = search.title.take().map(|words| words.trim().to_owned());
    let (filter, fields) = search.filter()?;
    let (views, total) = match title.filter(|words| !words.is_empty()) {
        Some(words) => face.service.find_titled(&filter, &words).await?,
        None => face.service.find_threads(&filter).await?,
    };
    let shown: Vec<Value> = views.iter().map(|view| wire::shown_thread(view, &fields)).collect();
    let mut response = Json(&shown).into_response();
    let headers = response.headers_mut();
    headers.insert("x-pagination-total", total.into());
    let next = u64::from(filter.offset) + shown.len() as u64;
    if next < total {
        headers.insert("x-pagination-next", next.into());
    }
    Ok(response)
}

pub(super) async fn count(State(face): State<Face>, body: Body) -> Result<Json<u64>, Refusal> {
    let (filter, _) = body.read::<Search>()?.filter()?;
    Ok(Json(face.service.kept().count_threads(&filter).await?))
}

pub(super) async fn get(
    State(face): State<Face>,
    OfThread(thread): OfThread,
) -> Result<Json<Value>, Refusal> {
    get_shown(&face, thread, &Fields::default()).await
}

async fn get_shown(face: &Face, thread: ThreadId, fields: &Fields) -> Result<Json<Value>, Refusal> {
    Ok(Json(wire::shown_thread(&face.service.thread(thread).await?, fields)))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Update {
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    metadata: Option<Value>,
}

pub(super) async fn update(
    State(face): State<Face>,
    OfThread(thread): OfThread,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let metadata = object(body.read::<Update>()?.metadata, "metadata")?;
    face.service.info_to_change(thread).await?;
    face.service.kept().note_thread(thread.0, &metadata, None, clock::now()).await?;
    get_shown(&face, thread, &Fields::default()).await
}

pub(super) async fn delete(
    State(face): State<Face>,
    OfThread(thread): OfThread,
) -> Result<StatusCode, Refusal> {
    face.service.delete_thread(thread).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Threads that are deleted, or of which the newest step alone is left.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Prune {
    thread_ids: Vec<Uuid>,
    #[serde(default)]
    strategy: Strategy,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Strategy {
    #[default]
    Delete,
    KeepLatest,
}

pub(super) async fn prune(State(face): State<Face>, body: Body) -> Result<Json<Value>, Refusal> {
    let Prune { thread_ids, strategy } = body.read()?;
    if thread_ids.len() > MOST as usize {
        return Err(Refusal::invalid(format!("at most {MOST} threads are pruned at a time")));
    }
    // All first, so that none is pruned beside one that is another user's.
    let mut found = Vec::with_capacity(thread_ids.len());
    for thread in thread_ids.into_iter().map(ThreadId) {
        match face.service.info_to_change(thread).await {
            Ok(_) => found.push(thread),
            // Gone is as good as pruned by somebody else.
            Err(Error::UnknownThread(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut pruned = 0;
    for thread in found {
        let done = match strategy {
            Strategy::Delete => face.service.delete_thread(thread).await,
            Strategy::KeepLatest => face.service.shorten_thread(thread).await,
        };
        match done {
            Ok(()) => pruned += 1,
            Err(Error::UnknownThread(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Json(json!({ "pruned_count": pruned })))
}

pub(super) async fn copy(
    State(face): State<Face>,
    OfThread(thread): OfThread,
) -> Result<Json<Value>, Refusal> {
    let copy = face.service.copy_thread(thread).await?;
    get_shown(&face, copy, &Fields::default()).await
}

/// Reads a field that is an object or nothing.
pub(super) fn object(given: Option<Value>, name: &str) -> Result<Value, Refusal> {
    match given {
        None | Some(Value::Null) => Ok(json!({})),
        Some(object @ Value::Object(_)) => Ok(object),
        Some(_) => Err(Refusal::invalid(format!("{name} must be an object"))),
    }
}

/// Names what the routes read.
pub(super) fn forms(forms: &mut Forms) {
    forms.body::<Create>("post /threads");
    forms.body::<Search>("post /threads/search");
    forms.body::<Search>("post /threads/count");
    forms.body::<Update>("patch /threads/{thread}");
    forms.body::<Prune>("post /threads/prune");
}
