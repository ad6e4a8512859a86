//! The status of all threads, runs and processes of a tenant, their usage, and alerts; models on this machine.

use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequest as _, Request, State};
use chrono::{DateTime, TimeDelta, Utc};
use perihelion_people::{SPENDING_DAYS, Scope};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::http::{JsonResult, Query, Raw};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_llm::openai::{self, LOCAL, greeting};
use perihelion_runtime::{Phase, usage};
use perihelion_service::Service;
use perihelion_service::kept::{Driver, ThreadFilter};

const FAILED: u32 = 20;

/// Number of threads whose journals are read for their usage, newest first.
const THREADS: u32 = 200;

/// Number of compared tenants, by the most tokens.
const TENANTS: u32 = 200;

/// After this a run that could begin has waited long.
const WAITED: TimeDelta = TimeDelta::minutes(1);

/// A process without a heartbeat for this long has ended.
const UNHEARD: TimeDelta = TimeDelta::seconds(30);

pub(super) async fn get(service: State<Service>) -> JsonResult {
    let kept = service.kept();
    let now = clock::now();
    let threads = kept.threads_by_status().await?;
    let threads: Map<String, Value> =
        threads.into_iter().map(|(status, count)| (status, json!(count))).collect();
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
        |driver| json!({ "name": driver.owner, "runs": driver.runs, "last_seen_at": driver.seen_at, "seen_at": driver.seen_at }),
    );
    Ok(Json(json!({
        "tenant": service.tenant(),
        "threads": threads,
        "runs": runs,
        "waiting_since": waits_since,
        // As each `seen_at` and `about`, a name of earlier versions.
        "waits_since": waits_since,
        "workers": workers.collect::<Vec<_>>(),
        "failures": failures.collect::<Vec<_>>(),
        "alerts": alerts(&service, now, waits_since, &drivers),
    })))
}

fn alert(name: &str, since: Option<DateTime<Utc>>, message: &str) -> Value {
    json!({ "name": name, "since": since, "message": message, "about": message })
}

fn alerts(
    service: &Service,
    now: DateTime<Utc>,
    waits_since: Option<DateTime<Utc>>,
    drivers: &[Driver],
) -> Vec<Value> {
    let mut alerts = Vec::new();
    if let Some(since) = waits_since.filter(|since| now - *since > WAITED) {
        let about = "a run is waiting for a worker; start more workers";
        alerts.push(alert("queue", Some(since), about));
    }
    for driver in drivers {
        if let Some(seen) = driver.seen_at.filter(|seen| now - *seen > UNHEARD) {
            let about = format!(
                "a worker sends no heartbeat; other workers take over its runs: {}",
                driver.owner
            );
            alerts.push(alert("worker", Some(seen), &about));
        }
    }
    for state in service.runtime().agents().states() {
        if matches!(state.phase, Phase::Failed | Phase::BreakerOpen | Phase::NeedsLogin) {
            let problem = state.problem.as_deref().unwrap_or(state.phase.as_str());
            let about = format!("MCP server {}: {problem}", state.server);
            alerts.push(alert("server", None, &about));
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

/// Returns the usage of the newest threads' model calls, by day, agent, model and user.
pub(super) async fn spent(service: State<Service>, Query(window): Query<Window>) -> JsonResult {
    let days = window.days();
    let since = clock::now() - TimeDelta::days(i64::from(days));
    let newest = ThreadFilter { limit: THREADS, ..ThreadFilter::default() };
    let (listed, total) = service.kept().threads(&newest).await?;
    let threads: Vec<_> = listed.into_iter().map(|one| (ThreadId(one.id), one.user)).collect();
    let runtime = service.runtime();
    let spent = usage(runtime.store().as_ref(), runtime.settings(), &threads, since).await?;
    let mut shown = json!(spent);
    shown["tenant"] = json!(service.tenant());
    shown["days"] = json!(days);
    shown["threads"] = json!(threads.len());
    shown["threads_in_all"] = json!(total);
    Ok(Json(shown))
}

/// Finds the servers of models on the machine of this process, for the operator of the service.
pub(super) async fn local_models(State(service): State<Service>) -> JsonResult {
    service.permit(Scope::Operate)?;
    let found = openai::find_local(&service.runtime().settings().models, &LOCAL).await;
    Ok(Json(json!({ "found": found })))
}

/// How long the model may take for one word: a local server may have to load it first.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks the model for one word, for the operator of the service.
pub(super) async fn check_model(State(service): State<Service>, request: Request) -> JsonResult {
    // The body must be JSON, which other sites' pages cannot send without permission.
    Raw::<()>::from_request(request, &()).await?;
    service.permit(Scope::Operate)?;
    let request = greeting();
    let asked =
        tokio::time::timeout(PATIENCE, service.runtime().model().chat(&request, None)).await;
    let problem = match asked {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("the model did not answer within {} s", PATIENCE.as_secs())),
    };
    Ok(Json(json!({ "answers": problem.is_none(), "problem": problem })))
}

/// Returns the usage of every tenant's runs, for the operator of the service, from the stored sums of each run.
pub(super) async fn tenants(service: State<Service>, Query(window): Query<Window>) -> JsonResult {
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
