//! The settings of a process, from option, environment, `perihelion.toml` and default.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde::Deserialize;

use super::embeddings::{EmbeddingKeys, Embeddings};
use super::encryption::Encryption;
use super::models::Models;
use super::resolve::{Key, Section, Sources};
use super::retention::{Archive, DocumentSettings, PARSER_KEY, Retention};
use super::sections::{Events, Limits, Log, Prompts, Servers, Store, Swarm, Teams, Trust, Worker};
use super::serve::Serve;
use super::strict::{self, Error, Invalid};
use super::traces::{MetricKeys, Metrics, Traces};

/// The default settings file, if it exists.
const DEFAULT_FILE: &str = "perihelion.toml";

/// Values of command-line options; each goes before environment and file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub servers: Option<PathBuf>,
    pub database: Option<String>,
    pub model_url: Option<String>,
    pub model: Option<String>,
    /// The model of one role, and its address unless it is that of the others.
    pub of_role: Option<RoleModel>,
    pub log: Option<String>,
    pub concurrency: Option<usize>,
    pub metrics: Option<String>,
    pub addr: Option<String>,
}

/// A model for one role, in place of the one in the settings.
#[derive(Clone, Debug)]
pub struct RoleModel {
    pub role: String,
    pub model: String,
    pub url: Option<String>,
}

macro_rules! settings {
    ($($field:ident: $section:ty),* $(,)?) => {
        /// Everything that can be set; the file `perihelion.toml` at the repository's root documents each key.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $(pub $field: $section,)*
            pub metrics: Metrics,
            /// `None` means keyword search alone.
            pub embeddings: Option<Embeddings>,
            /// The key of this program for a docling-serve.
            pub documents_parser_key: Option<SecretString>,
        }

        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct File {
            $($field: <$section as Section>::File,)*
            metrics: <MetricKeys as Section>::File,
            embeddings: <EmbeddingKeys as Section>::File,
        }

        impl Settings {
            /// Lists every key outside the role tables.
            pub fn keys() -> impl Iterator<Item = Key> {
                let tables = [$(<$section>::KEYS,)* MetricKeys::KEYS, EmbeddingKeys::KEYS];
                tables.into_iter().flatten().copied()
            }

            fn resolve(file: File, sources: &Sources<'_>) -> Result<Self, Error> {
                // Missing settings of the metrics' collector are those of the traces' collector.
                let metrics = Metrics::resolve(file.metrics, file.traces.clone(), sources)?;
                let keys = EmbeddingKeys::resolve(file.embeddings, sources)?;
                let mut settings = Self {
                    metrics,
                    embeddings: None,
                    documents_parser_key: sources.secret(PARSER_KEY),
                    $($field: <$section>::resolve(file.$field, sources)?,)*
                };
                settings.embeddings = keys.embeddings(&settings.models, sources);
                Ok(settings)
            }
        }
    };
}
settings! {
    models: Models,
    documents: DocumentSettings,
    store: Store,
    worker: Worker,
    serve: Serve,
    events: Events,
    servers: Servers,
    trust: Trust,
    limits: Limits,
    teams: Teams,
    swarm: Swarm,
    prompts: Prompts,
    log: Log,
    traces: Traces,
    retention: Retention,
    archive: Archive,
    encryption: Encryption,
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
            Some(path) => {
                let unread = |source| Error::Settings { path: path.to_owned(), source };
                strict::parse(path, &std::fs::read_to_string(path).map_err(unread)?)?
            }
            None => File::default(),
        };
        let options = overrides.into_options();
        let sources = Sources { options: &options, env, file };
        let settings = Self::resolve(parsed, &sources)?;
        for (key, bound) in [
            ("limits.max_cost_usd", settings.limits.max_cost_usd),
            ("teams.max_cost_usd", settings.teams.max_cost_usd),
            ("serve.max_daily_cost_usd", settings.serve.max_daily_cost_usd),
        ] {
            // A budget in money while a model's price is unknown could not be kept.
            if let Some(model) = settings.models.unpriced().filter(|_| bound.is_some()) {
                return Err(sources.refuse(key, Invalid::Unpriced(model)));
            }
        }
        Ok(settings)
    }

    /// Returns the settings file: `--config`, otherwise `PERIHELION_CONFIG`, otherwise `perihelion.toml` in the working
    /// directory if it exists.
    pub fn file(option: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        option
            .map(Path::to_owned)
            .or_else(|| env("PERIHELION_CONFIG").filter(|v| !v.is_empty()).map(PathBuf::from))
            .or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.is_file()))
    }
}

impl Overrides {
    fn into_options(self) -> Vec<(Cow<'static, str>, &'static str, String)> {
        let of_role = self.of_role.into_iter().flat_map(|RoleModel { role, model, url }| {
            let key = |key: &str| Cow::Owned(format!("models.roles.{role}.{key}"));
            [(key("model"), "--model", Some(model)), (key("url"), "--model", url)]
        });
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
        .map(|(key, option, value)| (Cow::Borrowed(key), option, value))
        .chain(of_role)
        .filter_map(|(key, option, value)| Some((key, option, value?)))
        .collect()
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
