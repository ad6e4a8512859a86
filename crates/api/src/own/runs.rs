//! Runs of all threads, found by their thread, status, time, graph, agent, user, error, cost and words.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{JsonResult, Query, Refusal};
use perihelion_service::kept::{FoundRun, RunSearch, RunStatus};
use perihelion_service::{Order, Service};

/// Runs of a page, by default and at most.
const PAGE: u32 = 50;
const MOST: u32 = 200;

/// Characters of a question that are listed.
const SHOWN: usize = 200;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Search {
    thread: Option<Uuid>,
    /// Statuses, separated by commas: `pending`, `running`, `success`, `error`, `timeout`, `interrupted`.
    status: Option<String>,
    /// Not created before this time.
    since: Option<DateTime<Utc>>,
    /// Created before this time.
    until: Option<DateTime<Utc>>,
    graph: Option<String>,
    /// An agent that worked in the run.
    agent: Option<String>,
    /// The user of the thread.
    user: Option<String>,
    /// A part of the error's text.
    error: Option<String>,
    /// The lowest cost in US dollars.
    min_cost_usd: Option<f64>,
    /// Words of the run's messages, all of them, in any form.
    text: Option<String>,
    /// `next` of the page before.
    after: Option<String>,
    /// 50 by default, 200 at most.
    limit: Option<u32>,
}

impl Search {
    fn read(self, service: &Service) -> Result<RunSearch, Refusal> {
        let statuses = self.status.as_deref().unwrap_or_default().split(',').map(str::trim);
        let status = |word| {
            let known = "expected pending, running, success, error, timeout or interrupted";
            let unknown = || Refusal::invalid(format!("status: {known}: {word}"));
            RunStatus::from_name(word).ok_or_else(unknown)
        };
        let named = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let unread = || Refusal::invalid("after: pass `next` of the page before");
        let after = named(self.after).map(|after| place(&after).ok_or_else(unread)).transpose()?;
        let error = named(self.error);
        service.check_searchable(error.is_some())?;
        Ok(RunSearch {
            thread: self.thread,
            statuses: statuses
                .filter(|word| !word.is_empty())
                .map(status)
                .collect::<Result<_, _>>()?,
            since: self.since,
            until: self.until,
            graph: named(self.graph),
            agent: named(self.agent),
            user: named(self.user),
            error,
            min_nano_usd: self.min_cost_usd.map(|usd| (usd * 1e9) as u64),
            words: service.conversation_words(self.text.unwrap_or_default().trim())?,
            after,
            limit: self.limit.unwrap_or(PAGE).clamp(1, MOST),
        })
    }
}

/// Reads the place of a run in the list: its time in microseconds and its ID.
fn place(text: &str) -> Option<(DateTime<Utc>, Uuid)> {
    let (at, id) = text.split_once('_')?;
    Some((DateTime::from_timestamp_micros(at.parse().ok()?)?, id.parse().ok()?))
}

pub(super) async fn list(State(service): State<Service>, search: Query<Search>) -> JsonResult {
    let search = search.0.read(&service)?;
    let found = service.kept().find_runs(&search).await?;
    let is_full = found.len() == search.limit as usize;
    let next = found
        .last()
        .filter(|_| is_full)
        .map(|FoundRun { run, .. }| format!("{}_{}", run.created_at.timestamp_micros(), run.id));
    let runs: Vec<Value> = found.iter().map(shown).collect();
    Ok(Json(json!({ "runs": runs, "next": next })))
}

fn shown(found: &FoundRun) -> Value {
    let FoundRun { run, number, graph, user, title, agents, tokens, nano_usd } = found;
    let order = Order::of(run).ok();
    let question = order.as_ref().and_then(Order::turn).map(|turn| &turn.question);
    let question: Option<String> = question.map(|text| text.chars().take(SHOWN).collect());
    let took = run.status.is_terminal().then(|| run.updated_at - run.created_at);
    json!({
        "run_id": run.id, "thread_id": run.thread, "number": number, "status": run.status,
        "title": title, "question": question, "graph_id": graph, "assistant_id": run.assistant,
        "agents": agents, "user": user, "created_at": run.created_at, "updated_at": run.updated_at,
        "duration_ms": took.map(|took| took.num_milliseconds()), "tokens": tokens,
        "cost_usd": nano_usd.map(|nano| nano as f64 / 1e9), "error": run.error,
    })
}
