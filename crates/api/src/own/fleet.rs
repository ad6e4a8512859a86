//! All threads, runs and processes of a tenant at a glance, what they took, and what somebody should look at.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use perihelion_people::{SPENDING_DAYS, Scope};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::http::{JsonResult, Query};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{Phase, usage};
use perihelion_service::Service;
use perihelion_service::kept::{Driver, ThreadFilter, ThreadOrder};

/// How threads stand, as lists name it.
const STATES: [&str; 6] = ["idle", "busy", "interrupted", "failed", "stopped", "queued"];

/// Failed runs that are shown.
const FAILED: u32 = 20;

/// Threads whose journals are read for what they took, newest first.
const THREADS: u32 = 200;

/// Tenants that are compared, those that took most tokens.
const TENANTS: u32 = 200;

/// After this a run that could begin has waited long.
const WAITED: TimeDelta = TimeDelta::minutes(1);

/// After this a process that was not heard of has gone.
const UNHEARD: TimeDelta = TimeDelta::seconds(30);

fn of_states(service: &Service, states: &[&str], limit: u32) -> ThreadFilter {
    ThreadFilter {
        graphs: service.runtime().graph_names(),
        ids: Vec::new(),
        metadata: json!({}),
        statuses: states.iter().map(|&state| state.to_owned()).collect(),
        order: ThreadOrder::Updated,
        ascending: false,
        limit,
        offset: 0,
    }
}

/// Answers how threads, runs and processes stand now.
pub(super) async fn get(State(service): State<Service>) -> JsonResult {
    let kept = service.kept();
    let now = clock::now();
    let mut threads = Map::new();
    for state in STATES {
        let count = kept.count_threads(&of_states(&service, &[state], 1)).await?;
        if count > 0 {
            threads.insert(state.to_owned(), json!(count));
        }
    }
    let runs = kept.runs_by_status().await?;
    let runs: Map<String, Value> =
        runs.iter().map(|(status, count)| (status.as_str().to_owned(), json!(count))).collect();
    let waits_since = kept.longest_waiting().await?;
    let drivers = kept.drivers().await?;
    let failed = kept.failed_runs(now - TimeDelta::days(7), FAILED).await?;
    let failures = failed.iter().map(|run| {
        json!({
            "thread_id": run.thread, "run_id": run.id, "status": run.status.as_str(),
            "error": run.error, "at": run.updated_at,
        })
    });
    let workers = drivers.iter().map(
        |driver| json!({ "name": driver.owner, "runs": driver.runs, "seen_at": driver.seen_at }),
    );
    Ok(Json(json!({
        "tenant": service.tenant(),
        "threads": threads,
        "runs": runs,
        "waits_since": waits_since,
        "workers": workers.collect::<Vec<_>>(),
        "failures": failures.collect::<Vec<_>>(),
        "alerts": alerts(&service, now, waits_since, &drivers),
    })))
}

/// Says what stands that somebody should look at.
fn alerts(
    service: &Service,
    now: DateTime<Utc>,
    waits_since: Option<DateTime<Utc>>,
    drivers: &[Driver],
) -> Vec<Value> {
    let mut alerts = Vec::new();
    if let Some(since) = waits_since.filter(|since| now - *since > WAITED) {
        let about = "a run is waiting for a worker; start more workers";
        alerts.push(json!({ "name": "queue", "since": since, "about": about }));
    }
    for driver in drivers {
        if let Some(seen) = driver.seen_at.filter(|seen| now - *seen > UNHEARD) {
            let about = format!(
                "a worker sends no heartbeat; other workers take over its runs: {}",
                driver.owner
            );
            alerts.push(json!({ "name": "worker", "since": seen, "about": about }));
        }
    }
    for state in service.runtime().agents().states() {
        if matches!(state.phase, Phase::Failed | Phase::BreakerOpen | Phase::NeedsLogin) {
            let problem = state.problem.as_deref().unwrap_or(state.phase.as_str());
            let about = format!("MCP server {}: {problem}", state.server);
            alerts.push(json!({ "name": "server", "since": null, "about": about }));
        }
    }
    alerts
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Window {
    /// Days to look back, 7 by default and 90 at most.
    days: Option<u32>,
}

impl Window {
    fn days(&self) -> u32 {
        self.days.unwrap_or(7).clamp(1, 90)
    }
}

/// Answers what the model calls of the newest threads took, by day, agent and model.
pub(super) async fn spent(
    State(service): State<Service>,
    Query(window): Query<Window>,
) -> JsonResult {
    let days = window.days();
    let since = clock::now() - TimeDelta::days(i64::from(days));
    let (listed, total) = service.kept().threads(&of_states(&service, &[], THREADS)).await?;
    let threads: Vec<ThreadId> = listed.iter().map(|one| ThreadId(one.id)).collect();
    let runtime = service.runtime();
    let spent = usage(runtime.store().as_ref(), runtime.settings(), &threads, since).await?;
    let mut shown = json!(spent);
    shown["tenant"] = json!(service.tenant());
    shown["days"] = json!(days);
    shown["threads"] = json!(threads.len());
    shown["threads_in_all"] = json!(total);
    Ok(Json(shown))
}

/// Answers what the runs of every tenant took, for who runs the service: from the sums that are kept of each run.
pub(super) async fn tenants(
    State(service): State<Service>,
    Query(window): Query<Window>,
) -> JsonResult {
    service.permit(Scope::Operate)?;
    let days = window.days().min(SPENDING_DAYS);
    let since = (clock::now() - TimeDelta::days(i64::from(days) - 1)).date_naive();
    let by_tenant = service.people().taken_by_tenant(since, TENANTS).await?;
    let shown = by_tenant.iter().map(|one| {
        let taken = one.taken;
        json!({
            "tenant": one.tenant, "runs": one.runs, "tokens": taken.tokens, "nano_usd": taken.nano_usd,
            "tool_calls": taken.tool_calls, "steps": taken.steps, "work_ms": taken.millis,
        })
    });
    Ok(Json(json!({ "days": days, "tenants": shown.collect::<Vec<_>>() })))
}
