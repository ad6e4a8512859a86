//! Threads are found: by what is noted of them, how they stand, their ids and their titles.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::body::Body;
use super::threads::{MOST, bounded, object, refuse};
use super::wire::{self, Fields};
use super::{Face, Refusal};
use crate::openapi::Forms;
use perihelion_service::kept::{ThreadFilter, ThreadOrder};
use perihelion_star::GRAPH;

/// Fields of metadata that a search compares at most: each is a value of its statement.
const MOST_FIELDS: usize = 100;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Search {
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    metadata: Option<Value>,
    status: Option<String>,
    ids: Option<Vec<Uuid>>,
    /// Of the protocol, and refused.
    values: Option<Value>,
    /// Of the protocol, and refused.
    extract: Option<Value>,
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
        let why = "values: threads are not found by their state; note in their metadata what they are to be found by";
        refuse(self.values.as_ref(), why)?;
        let why = "extract: nothing is taken out of threads here; select the fields, and take it out of those";
        refuse(self.extract.as_ref(), why)?;
        let ids = self.ids.unwrap_or_default();
        bounded(&ids, "ids")?;
        let metadata = object(self.metadata, "metadata")?;
        if metadata.as_object().is_some_and(|fields| fields.len() > MOST_FIELDS) {
            let why = format!("metadata: threads are found by at most {MOST_FIELDS} fields");
            return Err(Refusal::invalid(why));
        }
        let filter = ThreadFilter {
            graphs: vec![GRAPH.to_owned()],
            ids,
            metadata,
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

/// Names what the routes read.
pub(super) fn forms(forms: &mut Forms) {
    forms.body::<Search>("post /threads/search");
    forms.body::<Search>("post /threads/count");
}
