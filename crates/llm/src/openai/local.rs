//! Finds the servers of models on this machine.

use std::time::Duration;

use serde::Serialize;

use super::list_models;
use crate::Role;
use perihelion_settings::config::{ModelSettings, Models};

/// Where servers of models listen by default: on this machine alone.
pub const LOCAL: [(&str, &str); 4] = [
    ("Ollama", "http://127.0.0.1:11434/v1"),
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("vLLM", "http://127.0.0.1:8000/v1"),
    ("LM Studio", "http://127.0.0.1:1234/v1"),
];

/// Longest wait for a connection on this machine.
const NEAR: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Serialize)]
pub struct Local {
    pub server: &'static str,
    pub url: String,
    pub model: String,
    #[serde(skip)]
    pub settings: ModelSettings,
}

/// Returns the first model of each server that is not one for embeddings; servers that do not answer are left out.
pub async fn find_local(models: &Models, places: &[(&'static str, &str)]) -> Vec<Local> {
    let looked = places.iter().map(async |&(server, url)| {
        let base = models.clone().at(url, "").for_role(Role::Qa.as_str());
        let base = ModelSettings { connect_timeout: NEAR, ..base };
        let names = list_models(url, &base).await.ok()??;
        let model = names.into_iter().find(|name| !is_for_embeddings(name))?;
        let settings = ModelSettings { model: model.clone(), ..base };
        Some(Local { server, url: url.to_owned(), model, settings })
    });
    futures::future::join_all(looked).await.into_iter().flatten().collect()
}

fn is_for_embeddings(model: &str) -> bool {
    let model = model.to_lowercase();
    ["embed", "bge-", "e5-", "minilm", "rerank"].iter().any(|part| model.contains(part))
}
