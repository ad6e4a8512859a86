//! Comparisons of recorded threads with their replay, and with each other.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::http::{JsonResult, OfThread, Query};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime as runtime;
use perihelion_service::Service;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Again {
    /// Number of the run; all by default.
    run: Option<u32>,
}

/// Runs a recorded thread again, offline, and reports the first difference.
pub(super) async fn replay(
    service: State<Service>,
    OfThread(thread): OfThread,
    Query(Again { run }): Query<Again>,
) -> JsonResult {
    service.info(thread).await?;
    let runtime = service.runtime();
    let graph = runtime.graph_to_replay(thread).await?;
    let report = runtime.traces().replay(graph.as_ref(), thread, run).await?;
    let mut shown = json!(report);
    if let Some(divergence) = &report.divergence {
        let changes = runtime::changes(&divergence.expected, &divergence.actual);
        shown["divergence"]["changes"] = json!(changes);
    }
    Ok(Json(shown))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Other {
    /// The other thread; the same one to compare two runs of it.
    with: Uuid,
    /// Number of this thread's run; the whole thread by default.
    run: Option<u32>,
    /// Number of the other thread's run.
    with_run: Option<u32>,
}

pub(super) async fn diff(
    service: State<Service>,
    OfThread(thread): OfThread,
    Query(Other { with, run, with_run }): Query<Other>,
) -> JsonResult {
    let other = ThreadId(with);
    service.info(thread).await?;
    service.info(other).await?;
    let traces = service.runtime().traces();
    Ok(Json(json!(traces.compare((thread, run), (other, with_run)).await?)))
}
