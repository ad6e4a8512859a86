//! Threads as files.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use crate::http::{JsonResult, OfThread, Refusal};
use perihelion_engine::checkpoint::{self, read_dump, write_dump};
use perihelion_runtime::Error;
use perihelion_service::{self as service, Service};

pub(super) async fn export(
    State(service): State<Service>,
    OfThread(thread): OfThread,
) -> Result<Response, Refusal> {
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

pub(super) async fn import(State(service): State<Service>, file: Bytes) -> JsonResult {
    let dump = read_dump(file.as_ref()).map_err(|error| Refusal::invalid(error.to_string()))?;
    let info = service.import_thread(dump).await.map_err(|error| match error {
        // What is wrong with a file is what its sender can change.
        service::Error::Runtime(Error::Store(checkpoint::Error::Corrupt { .. })) => {
            Refusal::invalid(error.to_string())
        }
        other => other.into(),
    })?;
    Ok(Json(json!({ "thread_id": info.id })))
}
