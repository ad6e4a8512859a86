//! A thread as its trace, as the report of its newest turn, and as a file.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::http::{JsonResult, OfThread, Query, Refusal, ResponseResult};
use perihelion_engine::checkpoint::{self, read_dump, write_dump};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{Error, RunReport, Trace};
use perihelion_service::{self as service, Service};

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Which {
    /// Number of the run; the newest by default.
    run: Option<u32>,
}

async fn read(service: &Service, thread: ThreadId, run: Option<u32>) -> Result<Trace, Refusal> {
    service.info(thread).await?;
    Ok(service.runtime().traces().read(thread, run).await?)
}

pub(super) async fn get(
    service: State<Service>,
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

/// Returns the object that `run --json` prints, for the present state of the thread.
pub(super) async fn report(
    service: State<Service>,
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
    service: State<Service>,
    OfThread(thread): OfThread,
    Query(which): Query<Which>,
) -> ResponseResult {
    let trace = read(&service, thread, which.run).await?;
    let page = trace.to_page().map_err(Refusal::invalid)?;
    Ok(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response())
}

pub(super) async fn export(service: State<Service>, OfThread(thread): OfThread) -> ResponseResult {
    service.info(thread).await?;
    let dump = service.runtime().threads().export(thread).await?;
    let mut text = Vec::new();
    write_dump(&dump, &mut text)?;
    let name = format!("attachment; filename=\"{thread}.jsonl\"");
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson".to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, text).into_response())
}

pub(super) async fn import(service: State<Service>, file: Bytes) -> JsonResult {
    let dump = read_dump(file.as_ref()).map_err(Refusal::invalid)?;
    let info = service.import_thread(dump).await.map_err(|error| match error {
        // What is wrong with a file is what its sender can change.
        service::Error::Runtime(Error::Store(error))
            if error.is_of_thread() || matches!(error, checkpoint::Error::Import(_)) =>
        {
            Refusal::invalid(error)
        }
        other => other.into(),
    })?;
    Ok(Json(json!({ "thread_id": info.id })))
}
