//! Searches threads: by metadata, status, ID, title and words of the conversation.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::threads::{MOST, MOST_PARTS, bounded, conditions, refuse};
use super::wire::{self, Fields};
use super::{AppState, Refusal, page};
use crate::http::{Body, ResponseResult};
use perihelion_service::Service;
use perihelion_service::kept::{ThreadFilter, ThreadOrder};

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Search {
    metadata: Option<Map<String, Value>>,
    /// Fields that the metadata must lack; an extension of the protocol.
    without: Option<Vec<String>>,
    status: Option<Status>,
    ids: Option<Vec<Uuid>>,
    /// Of the protocol, and refused.
    values: Option<Value>,
    /// Of the protocol, and refused.
    extract: Option<Value>,
    /// Words of the title; an extension of the protocol.
    title: Option<String>,
    /// Words of the conversation, all of them, in any form; an extension of the protocol.
    text: Option<String>,
    limit: Option<u32>,
    offset: Option<u32>,
    sort_by: Option<ThreadOrder>,
    sort_order: Option<String>,
    select: Option<Vec<String>>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Idle,
    Busy,
    Interrupted,
    Error,
}

impl Search {
    fn filter(self, service: &Service) -> Result<(ThreadFilter, Fields), Refusal> {
        let statuses: &[&str] = match self.status {
            None => &[],
            Some(Status::Idle) => &["idle"],
            Some(Status::Busy) => &["busy", "queued"],
            Some(Status::Interrupted) => &["interrupted", "stopped"],
            Some(Status::Error) => &["failed", "parked"],
        };
        let why = "values: threads cannot be searched by state; search by metadata instead";
        refuse(self.values.as_ref(), why)?;
        let why = "extract: not supported; use select and extract the values in the client";
        refuse(self.extract.as_ref(), why)?;
        let ids = self.ids.unwrap_or_default();
        bounded(&ids, "ids")?;
        let without = self.without.unwrap_or_default();
        let metadata = conditions(self.metadata, "metadata")?;
        if without.len() > MOST_PARTS {
            let why = format!("without: a search has at most {MOST_PARTS} fields");
            return Err(Refusal::invalid(why));
        }
        let filter = ThreadFilter {
            ids,
            metadata,
            without,
            statuses: statuses.iter().map(|word| (*word).to_owned()).collect(),
            words: service.conversation_words(self.text.as_deref().unwrap_or_default())?,
            order: self.sort_by.unwrap_or_default(),
            ascending: self.sort_order.is_some_and(|order| order.eq_ignore_ascii_case("asc")),
            limit: self.limit.unwrap_or(10).clamp(1, MOST),
            offset: self.offset.unwrap_or(0),
        };
        Ok((filter, Fields(self.select.unwrap_or_default())))
    }
}

pub(super) async fn search(app: State<AppState>, Body(mut search): Body<Search>) -> ResponseResult {
    let title = search.title.take().map(|words| words.trim().to_owned());
    let (filter, fields) = search.filter(&app.service)?;
    let (views, total) = match title.filter(|words| !words.is_empty()) {
        Some(words) => app.service.find_titled(&filter, &words, fields.states()).await?,
        None => app.service.find_threads(&filter, fields.states()).await?,
    };
    let shown = views.iter().map(|view| wire::shown_thread(view, &fields)).collect();
    Ok(page(shown, filter.offset, total))
}

pub(super) async fn count(
    app: State<AppState>,
    Body(search): Body<Search>,
) -> Result<Json<u64>, Refusal> {
    let (filter, _) = search.filter(&app.service)?;
    Ok(Json(app.service.kept().count_threads(&filter).await?))
}
