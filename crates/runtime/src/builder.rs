//! Collects the options of a runtime, and opens it and its store.

use std::sync::Arc;

use tokio::sync::watch;

use super::accounts::database_exists;
use super::assemble::{Companions, Parts};
use super::plugins::Source;
use super::{Error, Graphs, Runtime};
use perihelion_engine::checkpoint::{self, Archive, Keyring, MemoryStore, Store, ThreadInfo};
use perihelion_engine::ids::ThreadId;
use perihelion_llm::{self as llm, ChatModel, OpenAiModel, Role};
use perihelion_mcp::{DiscoveryProgress, Pool, PoolOptions, ServersFile};
use perihelion_settings::config::Settings;
use perihelion_star::Kinds;
use perihelion_telemetry::ContinuedRuns;

/// A runtime that is not open yet; begin with [`Runtime::builder`].
///
/// Missing parts come from the settings: the model, the servers of the servers file, the store.
#[must_use = "the runtime is opened by `open`"]
pub struct Builder<'a> {
    settings: Settings,
    environment: &'a (dyn Fn(&str) -> Option<String> + Sync),
    looks: watch::Sender<DiscoveryProgress>,
    model: Option<Arc<dyn ChatModel>>,
    pool: Option<Pool>,
    store: Option<Arc<dyn Store>>,
    kinds: Kinds,
    stage: Option<Stage>,
    continued: ContinuedRuns,
    learns: bool,
    scans: bool,
    graphs: Graphs,
}

impl Runtime {
    /// Starts a runtime with these kinds of agents and the settings.
    ///
    /// The store is migrated, the servers are scanned in parallel, or known from an earlier time. A server that fails
    /// is reported by [`Agents::problems`](super::Agents::problems) and left out of the catalog, unless required.
    pub fn builder<'a>(settings: Settings, kinds: Kinds) -> Builder<'a> {
        Builder {
            settings,
            environment: &|_| None,
            looks: watch::Sender::default(),
            model: None,
            pool: None,
            store: None,
            kinds,
            stage: None,
            continued: ContinuedRuns::None,
            learns: true,
            scans: true,
            graphs: Graphs::new(),
        }
    }

    /// Checks that every role of a run has an endpoint.
    ///
    /// # Errors
    /// [`Error::Model`] saying what to set.
    pub fn check_model(settings: &Settings) -> Result<(), Error> {
        let roles = [Role::Supervisor, Role::Agent, Role::Reflector, Role::Qa];
        if roles.iter().all(|role| settings.models.for_role(role.as_str()).url.is_some()) {
            Ok(())
        } else {
            Err(llm::Error::NotConfigured.into())
        }
    }
}

impl<'a> Builder<'a> {
    /// Looks up the variables of the servers file with this function; without it, no variable is set.
    pub fn environment(self, of: &'a (dyn Fn(&str) -> Option<String> + Sync)) -> Self {
        Self { environment: of, ..self }
    }

    pub fn with_progress(self, looks: &watch::Sender<DiscoveryProgress>) -> Self {
        Self { looks: looks.clone(), ..self }
    }

    pub fn with_model(self, model: Arc<dyn ChatModel>) -> Self {
        Self { model: Some(model), ..self }
    }

    /// Calls these servers, which came from no file: they have no pins, and are not read again.
    pub fn with_pool(self, pool: Pool) -> Self {
        Self { pool: Some(pool), ..self }
    }

    /// Stores threads in this store, without skills, memories and teams.
    pub fn with_store(self, store: Arc<dyn Store>) -> Self {
        Self { store: Some(store), learns: false, ..self }
    }

    /// Runs these graphs in addition to the supervisor graph; with any, a model need not be configured.
    pub fn serving(self, graphs: Graphs) -> Self {
        Self { graphs, ..self }
    }

    /// Is a worker's, which continues with whatever was left.
    pub fn for_workers(self) -> Self {
        Self { continued: ContinuedRuns::All, ..self }
    }

    pub fn for_thread(self, thread: ThreadId) -> Self {
        Self { continued: ContinuedRuns::Of(thread), ..self }
    }

    /// Looks at no server: for questions that are left to workers.
    pub fn without_servers(self) -> Self {
        Self { scans: false, ..self }
    }

    /// Asks the model and calls the servers of a stage, and closes them with the runtime; nothing is learned from runs.
    pub fn on_stage(self, stage: Stage) -> Self {
        Self { stage: Some(stage), ..self }
    }

    /// Returns the thread that it continues with, unless it has a model or servers that the settings do not name.
    ///
    /// # Errors
    /// [`Error::Store`] if the thread is unknown or the store cannot be opened.
    pub async fn continued(&mut self) -> Result<Option<ThreadInfo>, Error> {
        let is_given = self.stage.is_some() || self.model.is_some() || self.pool.is_some();
        match self.continued {
            ContinuedRuns::Of(thread) if !is_given => {
                Ok(Some(self.store().await?.info(thread).await?))
            }
            _ => Ok(None),
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// [`Error`] naming the part that could not be opened and the way out; an unknown thread is found out before anything
    /// is started.
    pub async fn open(self) -> Result<Runtime, Error> {
        // Each in a place of its own: those who await this hold neither.
        let parts = Box::pin(self.parts()).await?;
        Box::pin(Runtime::assemble(parts)).await
    }

    async fn parts(mut self) -> Result<Box<Parts>, Error> {
        self.continued().await?;
        match self.stage.take() {
            Some(stage) => self.with_stage(stage).await,
            None => self.on_settings().await,
        }
    }

    /// Reads the settings before the first access to the database.
    async fn on_settings(mut self) -> Result<Box<Parts>, Error> {
        let model = match self.model.take() {
            Some(model) => model,
            None => {
                if self.graphs.is_empty() {
                    Runtime::check_model(&self.settings)?;
                }
                Arc::new(OpenAiModel::new(&self.settings.models)?)
            }
        };
        let (pool, source) = match self.pool.take() {
            Some(pool) => (pool, Source::default()),
            None => Source::read(&self.settings.servers.file, self.environment, &self.kinds)?
                .pool(&self.settings, &self.looks)?,
        };
        let store = self.store().await?;
        Ok(Box::new(self.with(store, model, pool, source)))
    }

    async fn with_stage(mut self, stage: Stage) -> Result<Box<Parts>, Error> {
        let store = self.store().await?;
        self.settings.models = self.settings.models.at(&stage.model_url, stage.model);
        let model = Arc::new(OpenAiModel::new(&self.settings.models)?);
        let pool = Pool::new(stage.servers, stage.pool);
        let parts = self.with(store, model, pool, Source::default());
        Ok(Box::new(Parts { companions: Some(stage.companions), ..parts }))
    }

    fn with(
        self,
        store: Arc<dyn Store>,
        model: Arc<dyn ChatModel>,
        pool: Pool,
        source: Source,
    ) -> Parts {
        Parts {
            settings: self.settings,
            store,
            model,
            pool,
            source,
            kinds: Arc::new(self.kinds),
            learns: self.learns,
            continued: self.continued,
            scans: self.scans,
            companions: None,
            graphs: self.graphs,
        }
    }

    async fn store(&mut self) -> Result<Arc<dyn Store>, Error> {
        let store = match self.store.take() {
            Some(store) => store,
            None => open_store(&self.settings).await?,
        };
        Ok(Arc::clone(self.store.insert(store)))
    }
}

/// Returns the keys of the settings; `None` without encryption.
pub fn keyring(settings: &Settings) -> Result<Option<Keyring>, Error> {
    Ok(Keyring::of_found(settings.encryption.exposed())?)
}

/// Opens only the store of the settings, with encryption if they name keys, and with their archive.
pub async fn open_store(settings: &Settings) -> Result<Arc<dyn Store>, Error> {
    let url = settings.store.database.expose();
    let archive = settings.archive.dir.clone().map(Archive::new);
    Ok(checkpoint::open_with(url, keyring(settings)?, archive).await?)
}

/// Opens the store of the settings for reading; creates none.
///
/// # Errors
/// As [`open_store`] and [`database_exists`].
pub async fn open_store_to_read(settings: &Settings) -> Result<Arc<dyn Store>, Error> {
    if database_exists(settings)? {
        open_store(settings).await
    } else {
        Ok(Arc::new(MemoryStore::new()))
    }
}

/// A model and servers that replace those of the settings. The threads belong to
/// [`DEMO_TENANT`](super::DEMO_TENANT).
pub struct Stage {
    pub model_url: String,
    pub model: &'static str,
    pub servers: ServersFile,
    pub pool: PoolOptions,
    /// Ends when the runtime is closed.
    pub companions: Companions,
}

#[cfg(test)]
mod tests {
    use super::*;
    use perihelion_settings::config::Overrides;
    use perihelion_star::ToolLoop;

    /// The parts are assembled in separate boxed futures, so that a command that awaits this needs no large stack.
    #[test]
    fn those_who_open_a_runtime_hold_little_of_it() {
        let settings = Settings::load(Overrides::default(), None, &|_| None).unwrap();
        let kinds = Kinds::new(Arc::new(ToolLoop));
        let opening = Runtime::builder(settings, kinds).open();
        let bytes = size_of_val(&opening);
        assert!(bytes < 16 << 10, "{bytes}");
    }
}
