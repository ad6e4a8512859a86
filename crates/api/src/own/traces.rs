//! The trace of a thread: as data, and as a page.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::{OfThread, Query, Refusal};
use perihelion_runtime::{RunReport, Trace};
use perihelion_service::Service;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Which {
    /// Number of the run; the newest by default.
    run: Option<u32>,
}

async fn read(
    service: &Service,
    thread: perihelion_engine::ids::ThreadId,
    run: Option<u32>,
) -> Result<Trace, Refusal> {
    service.info(thread).await?;
    Ok(service.runtime().traces().read(thread, run).await?)
}

pub(super) async fn get(
    State(service): State<Service>,
    OfThread(thread): OfThread,
    Query(which): Query<Which>,
) -> Result<Json<Trace>, Refusal> {
    Ok(Json(read(&service, thread, which.run).await?))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Wanted {
    include_data: bool,
    trace: bool,
}

/// Answers with the object that `run --json` prints, as the thread stands.
pub(super) async fn report(
    State(service): State<Service>,
    OfThread(thread): OfThread,
    Query(Wanted { include_data, trace }): Query<Wanted>,
) -> Result<Json<RunReport>, Refusal> {
    service.info(thread).await?;
    let mut report = service.runtime().at_rest(thread).await?;
    report.data = report.data.filter(|_| include_data);
    if trace {
        report.events = Some(service.runtime().events(thread).await?);
    }
    Ok(Json(report))
}

pub(super) async fn page(
    State(service): State<Service>,
    OfThread(thread): OfThread,
    Query(which): Query<Which>,
) -> Result<Response, Refusal> {
    let trace = read(&service, thread, which.run).await?;
    let page = trace.to_page().map_err(|error| Refusal::invalid(error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response())
}
