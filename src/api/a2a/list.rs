//! Lists tasks, those that changed last first.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::refusal::Refusal;
use super::{runs, shapes, tasks};
use crate::service::Service;
use crate::service::kept::Run;

/// Runs that are looked through.
const MOST: u32 = 1_000;

/// Which tasks are listed, and what is shown of each.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct List {
    #[serde(alias = "context_id")]
    context_id: Option<String>,
    status: Option<String>,
    #[serde(alias = "page_size")]
    page_size: Option<u32>,
    #[serde(alias = "page_token")]
    page_token: Option<String>,
    /// How many of the newest messages of each are shown.
    #[serde(alias = "history_length")]
    history_length: Option<u32>,
    /// Those that changed then or later.
    #[serde(alias = "status_timestamp_after")]
    status_timestamp_after: Option<DateTime<Utc>>,
    #[serde(alias = "include_artifacts")]
    include_artifacts: bool,
}

/// Where a task stands in the list: when its newest run changed, and its id.
type Place = (DateTime<Utc>, Uuid);

pub(super) async fn listed(service: &Service, list: &List) -> Result<Value, Refusal> {
    let named = list.context_id.as_deref().filter(|context| !context.is_empty());
    let context = named.map(|context| tasks::thread_of(service, context).0.0);
    let after = list.page_token.as_deref().filter(|token| !token.is_empty()).map(place);
    let after = after.transpose()?;
    let mut places = places(&service.kept().newest_runs(context, MOST).await?);
    places.retain(|(at, _)| list.status_timestamp_after.is_none_or(|after| *at >= after));
    let mut found = Vec::new();
    if let Some(wanted) = &list.status {
        let mut kept = Vec::new();
        for place in places {
            let task = tasks::found(service, &place.1.to_string()).await?;
            if task.state.word() == wanted {
                kept.push(place);
            }
        }
        places = kept;
    }
    let total = places.len();
    let size = list.page_size.unwrap_or(50).clamp(1, 100) as usize;
    let rest: Vec<Place> =
        places.into_iter().filter(|place| after.is_none_or(|after| *place < after)).collect();
    for (_, id) in rest.iter().take(size) {
        let task = tasks::found(service, &id.to_string()).await?;
        let mut shown = shapes::short_task(&task, list.history_length);
        if let Some(fields) = shown.as_object_mut()
            && !list.include_artifacts
        {
            fields.remove("artifacts");
        }
        found.push(shown);
    }
    let token = match rest.get(size.saturating_sub(1)) {
        Some((at, id)) if rest.len() > size => format!("{}.{id}", at.timestamp_micros()),
        _ => String::new(),
    };
    Ok(json!({ "tasks": found, "nextPageToken": token, "pageSize": size, "totalSize": total }))
}

/// Finds the tasks of runs that are sorted by when they changed, each at its newest run.
fn places(all: &[Run]) -> Vec<Place> {
    let mut seen = HashSet::new();
    let tasks = all.iter().filter_map(|run| Some((run.updated_at, runs::task_of(run)?)));
    let mut places: Vec<Place> = tasks.filter(|(_, task)| seen.insert(*task)).collect();
    places.sort_by(|one, other| other.cmp(one));
    places
}

/// Reads the place that a page ended with.
fn place(token: &str) -> Result<Place, Refusal> {
    let read = || {
        let (at, id) = token.split_once('.')?;
        Some((DateTime::from_timestamp_micros(at.parse().ok()?)?, id.parse().ok()?))
    };
    read().ok_or_else(|| Refusal::Invalid("pageToken is none that was given out".into()))
}
