//! Calls model endpoints over HTTP: compatible ones, and those whose wire `native` translates.
//!
//! Enter at [`OpenAiModel::new`]. `transport` sends and receives, `wire` reads JSON as leniently as compatible endpoints
//! need it, `stream` collects answers and `pieces` their texts, `lane` decides on attempts and waits, `probe` finds out
//! what an endpoint does, `local` finds endpoints. Invariant: no error text carries the API key, and a streamed answer is
//! never begun twice. Deliberately absent: a provider's own client library, whose typed answers refuse what endpoints send.

mod dialect;
mod lane;
mod local;
mod pieces;
mod probe;
mod stream;
mod transport;
mod wire;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use strum::VariantArray as _;

use self::dialect::Dialect;
use self::lane::Lane;
use super::{ChatModel, ChatRequest, ChatResponse, Error, Role, TokenSink};
pub use local::{LOCAL, Local, find_local};
use perihelion_http::reach;
use perihelion_settings::config::{self, Api, ModelSettings};
pub use probe::{Abilities, Schemas, Tools, greeting, probe};

/// The models of all roles: one lane per role, each with its own address, model and limits.
pub struct OpenAiModel {
    lanes: BTreeMap<Role, Lane>,
    /// Of agents with their own settings, by their server's name.
    agents: BTreeMap<String, Lane>,
}

impl OpenAiModel {
    /// Prepares the lanes without connecting.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when no HTTP client can be made, such as without any root certificates.
    pub fn new(models: &config::Models) -> Result<Self, Error> {
        config::tls::install();
        let mut dialects = BTreeMap::new();
        let connect_timeout = models.for_role(Role::Agent.as_str()).connect_timeout;
        // A client for addresses without TLS on this machine has no root certificates.
        let mut clients: BTreeMap<(bool, bool), reqwest::Client> = BTreeMap::new();
        let mut lane = |settings: ModelSettings| -> Result<Option<Lane>, Error> {
            let Some(url) = settings.url.clone() else { return Ok(None) };
            let dialect = dialects
                .entry((url.clone(), settings.model.clone(), settings.api))
                .or_insert_with(|| Arc::new(Dialect::new(settings.json_mode, &settings.model)))
                .clone();
            let http = match clients.entry((reach::is_loopback(&url), url.starts_with("http:"))) {
                Entry::Occupied(made) => made.get().clone(),
                Entry::Vacant(place) => place.insert(reach::client(connect_timeout, &url)?).clone(),
            };
            Ok(Some(Lane::new(http, &url, settings, dialect)))
        };
        let mut lanes = BTreeMap::new();
        let mut agents = BTreeMap::new();
        for role in Role::VARIANTS.iter().copied() {
            if let Some(lane) = lane(models.for_role(role.as_str()))? {
                lanes.insert(role, lane);
            }
        }
        for name in models.agents.keys() {
            if let Some(lane) = lane(models.for_agent(name))? {
                agents.insert(name.clone(), lane);
            }
        }
        Ok(Self { lanes, agents })
    }

    /// Returns the lane of an agent's own calls if it has one, otherwise that of its role.
    fn lane(&self, request: &ChatRequest) -> Option<&Lane> {
        let agent = request.agent.as_deref().filter(|_| request.role == Role::Agent);
        let own = agent.and_then(|agent| {
            self.agents
                .get(agent)
                .or_else(|| self.agents.get(agent.strip_prefix(config::AGENT_PREFIX)?))
        });
        own.or_else(|| self.lanes.get(&request.role))
    }
}

#[async_trait]
impl ChatModel for OpenAiModel {
    async fn chat(
        &self,
        request: &ChatRequest,
        sink: Option<TokenSink<'_>>,
    ) -> Result<ChatResponse, Error> {
        let lane = self.lane(request).ok_or(Error::NotConfigured)?;
        lane.chat(request, sink).await
    }
}

/// Longest wait for the list, because a person waits for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Statuses of endpoints that serve chats but no list of models.
const NO_LIST: [u16; 2] = [405, 501];

/// A model in an endpoint's list, as the endpoint describes it.
struct Listed(Value);

impl Listed {
    fn name(&self) -> Option<&str> {
        let name = ["id", "name"].iter().find_map(|key| self.0[key].as_str())?;
        Some(name.trim_start_matches("models/"))
    }
}

fn lane(url: &str, settings: ModelSettings) -> Result<Lane, Error> {
    config::tls::install();
    let http = reach::client(settings.connect_timeout, url)?;
    let dialect = Arc::new(Dialect::new(settings.json_mode, &settings.model));
    Ok(Lane::new(http, url, settings, dialect))
}

/// Lists the models of an endpoint; `None` when it answers but has no such list.
///
/// # Errors
/// [`Error::Unreachable`], [`Error::Timeout`], or [`Error::Refused`] such as for a wrong key.
pub async fn list_models(
    url: &str,
    settings: &ModelSettings,
) -> Result<Option<Vec<String>>, Error> {
    let patience = settings.timeout.min(PATIENCE);
    let lane = lane(url, ModelSettings { timeout: patience, ..settings.clone() })?;
    let listed = list(&lane, settings.api, patience).await?;
    let name = |one: &Listed| one.name().map(str::to_owned);
    Ok(listed.map(|listed| listed.iter().filter_map(name).collect()))
}

async fn list(lane: &Lane, api: Api, patience: Duration) -> Result<Option<Vec<Listed>>, Error> {
    let asked = tokio::time::timeout(patience, lane.transport.models()).await;
    let asked = asked.map_err(|_| lane.timeout())?;
    let (status, body) = asked.map_err(|error| lane.failed(error).error)?;
    if NO_LIST.contains(&status) {
        return Ok(None);
    }
    if status >= 300 {
        return Err(lane.refused(status, &reach::refusal_message(&body), None).error);
    }
    let mut listed: Value = serde_json::from_str(&body).unwrap_or_default();
    let key = if api == Api::Gemini { "models" } else { "data" };
    Ok(match listed[key].take() {
        Value::Array(models) => Some(models.into_iter().map(Listed).collect()),
        _ => None,
    })
}
