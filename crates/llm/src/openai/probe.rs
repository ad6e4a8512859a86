//! Asks an endpoint which models it has: reaches it and uses the key, but generates nothing.

use std::sync::Arc;
use std::time::Duration;

use perihelion_embeddings::reach;
use serde_json::Value;

use super::dialect::Dialect;
use super::lane::Lane;
use crate::Error;
use perihelion_settings::config::{self, Api, ModelSettings};

/// Longest wait for the list; it is asked for by somebody who waits.
const PATIENCE: Duration = Duration::from_secs(10);

/// Statuses of endpoints that serve chats but no list of models.
const NO_LIST: [u16; 2] = [405, 501];

/// Lists the models of an endpoint; `None` when it answers but has no such list.
///
/// # Errors
/// [`Error::Unreachable`], [`Error::Timeout`], or [`Error::Refused`] such as for a wrong key.
pub async fn list_models(
    url: &str,
    settings: &ModelSettings,
) -> Result<Option<Vec<String>>, Error> {
    config::tls::install();
    let http = reach::client(settings.connect_timeout, url)?;
    let dialect = Arc::new(Dialect::new(settings.json_mode, &settings.model));
    let patience = settings.timeout.min(PATIENCE);
    let api = settings.api;
    let settings = ModelSettings { timeout: patience, ..settings.clone() };
    let lane = Lane::new(http, url, settings, dialect);
    let asked = tokio::time::timeout(patience, lane.transport.models()).await;
    let asked = asked.map_err(|_| lane.timeout())?;
    let (status, body) = asked.map_err(|error| lane.failed(error).error)?;
    if NO_LIST.contains(&status) {
        return Ok(None);
    }
    if status >= 300 {
        return Err(lane.refused(status, &reach::refusal_message(&body), None).error);
    }
    let listed: Option<Value> = serde_json::from_str(&body).ok();
    let (list, name) = match api {
        Api::Gemini => ("models", "name"),
        Api::ChatCompletions | Api::Anthropic => ("data", "id"),
    };
    let names = listed.as_ref().and_then(|listed| listed[list].as_array()).map(|models| {
        let names = models.iter().filter_map(|one| one[name].as_str());
        names.map(|name| name.trim_start_matches("models/").to_owned()).collect()
    });
    Ok(names)
}
