//! Recorded threads beside what they would do now, and beside each other.

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

/// Runs a recorded thread again, offline, and says where it would go otherwise.
pub(super) async fn replay(
    State(service): State<Service>,
    OfThread(thread): OfThread,
    Query(Again { run }): Query<Again>,
) -> JsonResult {
    service.info(thread).await?;
    let kinds = service.runtime().kinds().clone();
    let runtime = service.runtime();
    let graph = runtime.own_graph(&runtime.store().info(thread).await?.graph);
    let report = match graph {
        Some(graph) => runtime.traces().replay_own(graph.as_ref(), thread, run).await?,
        None => runtime.traces().replay(thread, run, kinds).await?,
    };
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

/// Compares two threads, or runs of them, step by step.
pub(super) async fn diff(
    State(service): State<Service>,
    OfThread(thread): OfThread,
    Query(Other { with, run, with_run }): Query<Other>,
) -> JsonResult {
    let other = ThreadId(with);
    service.info(thread).await?;
    service.info(other).await?;
    let traces = service.runtime().traces();
    Ok(Json(json!(traces.compare((thread, run), (other, with_run)).await?)))
}
