//! Threads as files.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use crate::api::agent_server::{OfThread, Refusal};
use crate::checkpoint::{read_dump, write_dump};
use crate::service::Service;

pub(super) async fn export(
    State(service): State<Service>,
    OfThread(thread): OfThread,
) -> Result<Response, Refusal> {
    service.info(thread).await?;
    let dump = service.runtime().store().export(thread).await?;
    let mut text = Vec::new();
    write_dump(&dump, &mut text)?;
    let name = format!("attachment; filename=\"{thread}.jsonl\"");
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson".to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, text).into_response())
}

pub(super) async fn import(
    State(service): State<Service>,
    file: Bytes,
) -> Result<Json<Value>, Refusal> {
    let mut dump = read_dump(file.as_ref()).map_err(|error| Refusal::invalid(error.to_string()))?;
    for part in
        std::iter::once(&mut dump.info).chain(dump.children.iter_mut().map(|one| &mut one.info))
    {
        service.tenant().clone_into(&mut part.tenant);
    }
    let store = service.runtime().store();
    store.check_keys().await?;
    store.import(&dump).await?;
    Ok(Json(json!({ "thread_id": dump.info.id })))
}
