//! Lists tasks, the most recently changed first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use axum::{Json, extract};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::refusal::Refusal;
use super::state::{self, State};
use super::tasks::{self, Task};
use super::{runs, shapes};
use crate::http::{Asked, JsonResult, Refusal as Plain};
use crate::request_fields;
use perihelion_service::Service;
use perihelion_service::kept::Run;

/// Runs that are looked through.
const MOST: u32 = 1_000;

/// The states of the protocol, after the prefix of each; tasks here have those of [`State`].
const STATES: &str =
    "SUBMITTED, WORKING, COMPLETED, FAILED, CANCELED, INPUT_REQUIRED, REJECTED, AUTH_REQUIRED";

/// The filter for tasks, and the shown fields.
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
    /// Tasks that changed at this time or later.
    #[serde(alias = "status_timestamp_after")]
    status_timestamp_after: Option<DateTime<Utc>>,
    #[serde(alias = "include_artifacts")]
    include_artifacts: bool,
}

/// The position of a task in the list: the time of its newest run's change, and its ID.
type Place = (DateTime<Utc>, Uuid);

/// A task of the list, with those runs of its thread that were read, newest first.
struct Listed<'a> {
    place: Place,
    of_thread: &'a [Run],
}

pub(super) async fn listed(
    service: extract::State<Service>,
    list: Result<Asked<List>, Plain>,
) -> JsonResult<Refusal> {
    let Asked(list) = list?;
    let named = list.context_id.as_deref().filter(|context| !context.is_empty());
    let context = named.map(|context| tasks::thread_of(&service, context).0.0);
    let after = list.page_token.as_deref().filter(|token| !token.is_empty()).map(place);
    let after = after.transpose()?;
    let size = list.page_size.unwrap_or(50) as usize;
    if !(1..=100).contains(&size) {
        return Err(Refusal::Invalid("pageSize must be between 1 and 100".into()));
    }
    let wanted = list.status.as_deref().filter(|word| !word.is_empty());
    let states = STATES.split(", ").map(|state| format!("TASK_STATE_{state}"));
    let states: Vec<String> = states.collect();
    if let Some(unknown) = wanted.filter(|word| states.iter().all(|state| state != word)) {
        let why = format!("status: {unknown:?} is not one of {}", states.join(", "));
        return Err(Refusal::Invalid(why));
    }
    let threads = by_thread(service.kept().newest_runs(context, MOST).await?);
    let mut all = by_place(&threads);
    all.retain(|one| list.status_timestamp_after.is_none_or(|after| one.place.0 >= after));
    if let Some(wanted) = wanted {
        let mut kept = Vec::new();
        for one in all {
            if one.state(&service).await?.word() == wanted {
                kept.push(one);
            }
        }
        all = kept;
    }
    let total = all.len();
    all.retain(|one| after.is_none_or(|after| one.place < after));
    let mut shown = Vec::new();
    for one in all.iter().take(size) {
        let mut task = shapes::short_task(&one.task(&service, &list).await?, list.history_length);
        if let Some(fields) = task.as_object_mut().filter(|_| !list.include_artifacts) {
            fields.remove("artifacts");
        }
        shown.push(task);
    }
    let token = match all.get(size.saturating_sub(1)) {
        Some(Listed { place: (at, id), .. }) if all.len() > size => {
            format!("{}.{id}", at.timestamp_micros())
        }
        _ => String::new(),
    };
    let page =
        json!({ "tasks": shown, "nextPageToken": token, "pageSize": size, "totalSize": total });
    Ok(Json(page))
}

impl Listed<'_> {
    /// Returns the runs of the task, oldest first; `None` if it began before the runs that were read.
    fn runs(&self) -> Option<Vec<&Run>> {
        let first = self.of_thread.iter().find(|run| run.id == self.place.1)?;
        Some(runs::of_task(first, self.of_thread))
    }

    /// Reads its status, without its messages.
    async fn state(&self, service: &Service) -> Result<State, Refusal> {
        match self.runs().as_deref() {
            Some([.., newest]) => state::alone(service, newest).await,
            _ => Ok(tasks::found(service, &self.place.1.to_string()).await?.state),
        }
    }

    /// Reads the task; its answer only where artifacts are wanted.
    async fn task(&self, service: &Service, list: &List) -> Result<Task, Refusal> {
        let runs = self.runs().unwrap_or_default();
        let (Some(first), Some(newest)) = (runs.first(), runs.last()) else {
            return tasks::found(service, &self.place.1.to_string()).await;
        };
        let mut task = Task::of(first, &runs, state::alone(service, newest).await?);
        if list.include_artifacts || task.state != State::Completed {
            (task.state, task.text) = state::of_run(service, newest).await?;
        }
        if task.state == State::Completed {
            task.more = request_fields::asked_for(service, newest).await?;
        }
        Ok(task)
    }
}

/// Puts runs together by their threads, newest first.
fn by_thread(all: Vec<Run>) -> Vec<Vec<Run>> {
    let mut threads: HashMap<Uuid, Vec<Run>> = HashMap::new();
    for run in all {
        threads.entry(run.thread).or_default().push(run);
    }
    for runs in threads.values_mut() {
        runs.sort_by_key(|run| Reverse((run.created_at, run.id)));
    }
    threads.into_values().collect()
}

/// Finds the tasks of threads, each at its last changed run, in the order of the changes, newest first.
fn by_place(threads: &[Vec<Run>]) -> Vec<Listed<'_>> {
    let mut all = Vec::new();
    for of_thread in threads {
        let mut changed: BTreeMap<Uuid, DateTime<Utc>> = BTreeMap::new();
        for (task, at) in
            of_thread.iter().filter_map(|run| Some((runs::task_of(run)?, run.updated_at)))
        {
            let newest = changed.entry(task).or_insert(at);
            *newest = at.max(*newest);
        }
        all.extend(changed.into_iter().map(|(task, at)| Listed { place: (at, task), of_thread }));
    }
    all.sort_by_key(|one| Reverse(one.place));
    all
}

/// Reads the place that a page ended with.
fn place(token: &str) -> Result<Place, Refusal> {
    let read = || {
        let (at, id) = token.split_once('.')?;
        Some((DateTime::from_timestamp_micros(at.parse().ok()?)?, id.parse().ok()?))
    };
    read().ok_or_else(|| {
        Refusal::Invalid("invalid pageToken: send the nextPageToken of an earlier page".into())
    })
}
