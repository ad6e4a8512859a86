//! The settings of a process, from option, environment, `perihelion.toml` and default.

use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde::Deserialize;

use super::documents::{DocumentSettings, DocumentSettingsFile, PARSER_KEY};
use super::embeddings::{EmbeddingKeys, Embeddings, EmbeddingsFile};
use super::encryption::{Encryption, EncryptionFile};
use super::key::Key;
use super::metrics::{Metrics, MetricsFile};
use super::models::{Models, ModelsFile};
use super::resolve::Sources;
use super::retention::{Retention, RetentionFile};
use super::sections::{
    Events, EventsFile, Limits, LimitsFile, Log, LogFile, Prompts, PromptsFile, Servers,
    ServersFile, Store, StoreFile, Swarm, SwarmFile, Teams, TeamsFile, Worker, WorkerFile,
};
use super::serve::{Serve, ServeFile};
use super::strict::{self, Error};
use super::traces::{Traces, TracesFile};
use super::trust::{Trust, TrustFile};

/// The settings file that is read when none is named and it exists.
const DEFAULT_FILE: &str = "perihelion.toml";

/// Everything that can be set; the file `perihelion.toml` at the repository's root documents each key.
#[derive(Clone, Debug)]
pub struct Settings {
    pub models: Models,
    /// None: everything is found by words alone.
    pub embeddings: Option<Embeddings>,
    pub documents: DocumentSettings,
    /// What a docling-serve knows this program by.
    pub documents_parser_key: Option<SecretString>,
    pub store: Store,
    pub worker: Worker,
    pub serve: Serve,
    pub events: Events,
    pub servers: Servers,
    pub trust: Trust,
    pub limits: Limits,
    pub teams: Teams,
    pub swarm: Swarm,
    pub prompts: Prompts,
    pub log: Log,
    pub traces: Traces,
    pub metrics: Metrics,
    pub retention: Retention,
    pub encryption: Encryption,
}

/// Values of command-line options; each goes before environment and file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--servers`
    pub servers: Option<PathBuf>,
    /// `--database`
    pub database: Option<String>,
    /// `--model-url`
    pub model_url: Option<String>,
    /// `--model`
    pub model: Option<String>,
    /// `--log`
    pub log: Option<String>,
    /// `--concurrency`
    pub concurrency: Option<usize>,
    /// `--metrics`
    pub metrics: Option<String>,
    /// `--addr`
    pub addr: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    models: ModelsFile,
    embeddings: EmbeddingsFile,
    documents: DocumentSettingsFile,
    store: StoreFile,
    worker: WorkerFile,
    serve: ServeFile,
    events: EventsFile,
    servers: ServersFile,
    trust: TrustFile,
    limits: LimitsFile,
    teams: TeamsFile,
    swarm: SwarmFile,
    prompts: PromptsFile,
    log: LogFile,
    traces: TracesFile,
    metrics: MetricsFile,
    retention: RetentionFile,
    encryption: EncryptionFile,
}

impl Settings {
    /// Loads the settings; `file` must exist where given, `env` reads one environment variable.
    ///
    /// # Errors
    /// [`Error`] that names the option, the variable, or the file's line and key.
    pub fn load(
        overrides: Overrides,
        file: Option<&Path>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let parsed = match file {
            Some(path) => strict::load(path)?,
            None => File::default(),
        };
        let sources = Sources { options: overrides.into_options(), env, file };
        let models = Models::resolve(parsed.models, &sources)?;
        let limits = Limits::resolve(parsed.limits, &sources)?;
        let teams = Teams::resolve(parsed.teams, &sources)?;
        let serve = Serve::resolve(parsed.serve, &sources)?;
        for (key, bound) in [
            ("limits.max_cost_usd", limits.max_cost_usd),
            ("teams.max_cost_usd", teams.max_cost_usd),
            ("serve.max_daily_cost_usd", serve.max_daily_cost_usd),
        ] {
            if bound.is_some() {
                check_prices(&models).map_err(|message| sources.refuse(key, message))?;
            }
        }
        let embeddings = EmbeddingKeys::read(parsed.embeddings, &models, &sources)?;
        Ok(Self {
            models,
            embeddings,
            limits,
            documents: DocumentSettings::resolve(parsed.documents, &sources)?,
            documents_parser_key: sources.env(PARSER_KEY).map(|key| key.trim().to_owned().into()),
            teams,
            store: Store::resolve(parsed.store, &sources)?,
            worker: Worker::resolve(parsed.worker, &sources)?,
            serve,
            events: Events::resolve(parsed.events, &sources)?,
            servers: Servers::resolve(parsed.servers, &sources)?,
            trust: Trust::resolve(parsed.trust, &sources)?,
            swarm: Swarm::resolve(parsed.swarm, &sources)?,
            prompts: Prompts::resolve(parsed.prompts, &sources)?,
            log: Log::resolve(parsed.log, &sources)?,
            traces: Traces::resolve(parsed.traces.clone(), &sources)?,
            metrics: Metrics::resolve(parsed.metrics, parsed.traces, &sources)?,
            retention: Retention::resolve(parsed.retention, &sources)?,
            encryption: Encryption::resolve(parsed.encryption, &sources)?,
        })
    }

    /// Returns the settings file to read: `--config`, else `PERIHELION_CONFIG`, else `perihelion.toml`
    /// in the working directory where there is one.
    pub fn file(option: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        option
            .map(Path::to_owned)
            .or_else(|| env("PERIHELION_CONFIG").filter(|v| !v.is_empty()).map(PathBuf::from))
            .or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.is_file()))
    }

    /// Lists every key outside the role tables.
    pub fn keys() -> impl Iterator<Item = Key> {
        [
            Models::KEYS,
            EmbeddingKeys::KEYS,
            DocumentSettings::KEYS,
            Store::KEYS,
            Worker::KEYS,
            Serve::KEYS,
            Events::KEYS,
            Servers::KEYS,
            Trust::KEYS,
            Limits::KEYS,
            Teams::KEYS,
            Swarm::KEYS,
            Prompts::KEYS,
            Log::KEYS,
            Traces::KEYS,
            Metrics::KEYS,
            Retention::KEYS,
            Encryption::KEYS,
        ]
        .into_iter()
        .flatten()
        .copied()
    }
}

/// Refuses a budget in money while a model's price is unknown, because it could not be kept.
fn check_prices(models: &Models) -> Result<(), String> {
    let prices = models.price_list();
    let of_roles = super::Roles::NAMES.iter().map(|role| (*role, models.for_role(role).model));
    let of_agents = models.agents.keys().map(|name| ("", models.for_agent(name).model));
    for (role, model) in of_roles.chain(of_agents) {
        if prices.of(role, &model).is_none() {
            return Err(format!(
                "needs the price of every model that is used: add [models.prices.{model:?}] with \
                 input_per_mtok and output_per_mtok"
            ));
        }
    }
    Ok(())
}

impl Overrides {
    fn into_options(self) -> Vec<(&'static str, &'static str, String)> {
        let servers = self.servers.map(|path| path.to_string_lossy().into_owned());
        [
            ("servers.file", "--servers", servers),
            ("store.database", "--database", self.database),
            ("models.url", "--model-url", self.model_url),
            ("models.model", "--model", self.model),
            ("log.filter", "--log", self.log),
            ("worker.concurrency", "--concurrency", self.concurrency.map(|n| n.to_string())),
            ("worker.metrics", "--metrics", self.metrics),
            ("serve.addr", "--addr", self.addr),
        ]
        .into_iter()
        .filter_map(|(key, option, value)| Some((key, option, value?)))
        .collect()
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
