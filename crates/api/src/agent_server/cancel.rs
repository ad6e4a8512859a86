//! Stops runs: one, or several by their IDs, their thread or their status.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::runs::ended;
use super::stream::places;
use super::threads::bounded;
use super::{AppState, Refusal};
use crate::http::{Asked as Query, Body, OfRun, ResponseResult, StatusResult};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_service::Error;
use perihelion_service::kept::{Cancel, Run, RunStatus};

/// Runs of a tenant that are read at a time.
const AT_ONCE: u32 = 100;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct HowToCancel {
    wait: Option<String>,
    action: Option<Cancel>,
}

impl HowToCancel {
    fn action(&self) -> Cancel {
        self.action.unwrap_or(Cancel::Interrupt)
    }
}

/// Reports that there is no run to stop.
const NOTHING: &str = "No matching runs to cancel. Please verify the thread ID and run IDs are correct, and the runs \
    haven't been deleted or completed.";

pub(super) async fn cancel(
    app: State<AppState>,
    OfRun(thread, run): OfRun,
    Query(how): Query<HowToCancel>,
) -> ResponseResult {
    let run =
        app.service.kept().run(thread.0, run).await?.ok_or_else(|| Refusal::missing(NOTHING))?;
    if app.service.cancel(&run, how.action()).await?.is_none() {
        return Err(Refusal::missing(NOTHING));
    }
    if !how.wait.is_some_and(|wait| matches!(wait.as_str(), "1" | "true")) {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    ended(&app.service, &run).await?;
    Ok((places(&run, Some("join")), Json(json!({}))).into_response())
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct CancelMany {
    thread_id: Option<Uuid>,
    run_ids: Vec<Uuid>,
    status: Option<Which>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Which {
    Pending,
    Running,
    All,
}

impl CancelMany {
    fn means(&self, run: &Run) -> bool {
        let stands_so = match self.status {
            Some(Which::Pending) => run.status == RunStatus::Pending,
            Some(Which::Running) => run.status == RunStatus::Running,
            Some(Which::All) | None => true,
        };
        stands_so && self.thread_id.is_none_or(|thread| run.thread == thread)
    }
}

pub(super) async fn cancel_many(
    app: State<AppState>,
    Query(how): Query<HowToCancel>,
    Body(many): Body<CancelMany>,
) -> StatusResult {
    bounded(&many.run_ids, "run_ids")?;
    let action = how.action();
    let kept = app.service.kept();
    let stopped = match (many.run_ids.as_slice(), many.thread_id, many.status) {
        ([], None, None) => {
            return Err(Refusal::invalid("name the runs by run_ids, thread_id or status"));
        }
        ([], Some(thread), _) => stop(&app, &many, action, &kept.open_runs(thread).await?).await?,
        ([], None, Some(_)) => stop_open(&app, &many, action).await?,
        (ids, ..) => {
            let mut runs = Vec::with_capacity(ids.len());
            for id in ids {
                runs.extend(kept.find_run(*id).await?);
            }
            stop(&app, &many, action, &runs).await?
        }
    };
    match stopped {
        0 => Err(Refusal::missing("No runs found to cancel.")),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}

/// Stops the selected ones of some runs, and returns how many were open.
async fn stop(
    app: &AppState,
    many: &CancelMany,
    action: Cancel,
    runs: &[Run],
) -> Result<usize, Refusal> {
    // All first, so that none is stopped beside one of another user's thread.
    for run in runs.iter().filter(|run| many.means(run)) {
        app.service.user_on(ThreadId(run.thread), None).await?;
    }
    let mut stopped = 0;
    for run in runs.iter().filter(|run| many.means(run)) {
        stopped += usize::from(app.service.cancel(run, action).await?.is_some());
    }
    Ok(stopped)
}

/// Stops the selected ones of the tenant's open runs that the caller is permitted to stop.
async fn stop_open(app: &AppState, many: &CancelMany, action: Cancel) -> Result<usize, Refusal> {
    let now = clock::now();
    let mut stopped = 0;
    let mut after = None;
    loop {
        let runs = app.service.kept().open_runs_of_tenant(now, after, AT_ONCE).await?;
        let Some(last) = runs.last() else { return Ok(stopped) };
        after = Some(last.id);
        for run in runs.iter().filter(|run| many.means(run)) {
            match app.service.cancel(run, action).await {
                Ok(stood) => stopped += usize::from(stood.is_some()),
                Err(Error::OthersThread) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
