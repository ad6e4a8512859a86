//! The plug-ins of a running process: read from the servers file, and read again when it changes.
//!
//! An unusable servers file is ignored: the present servers continue. Active runs continue in any case; a thread finds
//! out about a removed agent when it needs one.

mod absent;
mod presence;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch::Sender;
use tokio_util::task::AbortOnDropHandle;

use super::Error;
use super::agents::{ServerProblem, Survey, sort_out};
use perihelion_mcp::{
    self as mcp, Absent, DiscoveryProgress, Logins, Pins, Pool, PoolOptions, Reloaded, ServersFile,
    Warning,
};
use perihelion_settings::config::{self, PinMode, Settings, strict};
use perihelion_star::{Agent, Kinds, Roster, ServerAgent};

pub use absent::Readiness;
pub use presence::{Answer as ReloadAnswer, Process, processes, request_reload};
pub use watch::{Environment, ReloadListener, ReloadOutcome, Watching};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// It leaves a question to the workers, and looks at no server.
    OfSubmission,
    OfRun,
    /// It does whatever runs there are, and asks absent servers again.
    Long,
}

pub(super) struct Plugins {
    /// The path of the servers file; `None` if they came from another place.
    file: Option<PathBuf>,
    pub(super) pool: Arc<Pool>,
    roster: Arc<Roster>,
    pub(super) kinds: Arc<Kinds>,
    pub(super) problems: RwLock<Vec<ServerProblem>>,
    /// Entries that the servers file should not have.
    warnings: RwLock<Vec<Warning>>,
    life: Life,
    sources: RwLock<Vec<PathBuf>>,
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
pub(super) struct Source {
    pub servers: ServersFile,
    pub file: Option<PathBuf>,
}

impl Source {
    /// Reads a servers file; only the default one may be missing.
    pub fn read(
        path: &Path,
        env: &dyn Fn(&str) -> Option<String>,
        kinds: &Kinds,
    ) -> Result<Self, Error> {
        Ok(Self { servers: read_checked(path, env, kinds)?, file: Some(path.to_owned()) })
    }

    /// Makes the pool of these servers, which starts them at their first call if the settings say so.
    ///
    /// # Errors
    /// [`Error::Config`] when the servers' pins cannot be used.
    pub fn pool(
        self,
        settings: &Settings,
        looks: &Sender<DiscoveryProgress>,
    ) -> Result<(Pool, Self), Error> {
        let usual = pool_options(settings, false)?;
        let options = PoolOptions { looks: looks.clone(), refresh_beside: true, ..usual };
        let Self { servers, file } = self;
        let about = ServersFile { servers: Vec::new(), ..servers.clone() };
        Ok((Pool::new(servers, options), Self { servers: about, file }))
    }
}

pub(super) fn pool_options(settings: &Settings, refresh: bool) -> Result<PoolOptions, Error> {
    let pins = Some(Arc::new(pins(settings, settings.trust.pins)?));
    let cache = settings.servers.cache.then(config::cache_directory).flatten();
    let cache = cache.map(|directory| directory.join("definitions"));
    let logins = Some(logins());
    Ok(PoolOptions { cache, refresh, pins, logins, ..PoolOptions::default() })
}

pub(super) fn pins(settings: &Settings, mode: PinMode) -> Result<Pins, Error> {
    Ok(match settings.trust.pins_file.clone() {
        Some(path) => Pins::at(path, mode)?,
        None => Pins::beside(&settings.servers.file, mode)?,
    })
}

pub(super) fn logins() -> Logins {
    Logins::new(config::data_directory().join("logins"))
}

pub(super) fn read(
    path: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<ServersFile, Error> {
    if !path.exists() {
        return if path == Path::new("mcp-servers.toml") {
            Ok(ServersFile::default())
        } else {
            Err(Error::NoServersFile(path.to_owned()))
        };
    }
    Ok(ServersFile::load(path, env)?)
}

/// Reads a servers file, and rejects unknown kinds of agents.
pub(super) fn read_checked(
    path: &Path,
    env: &dyn Fn(&str) -> Option<String>,
    kinds: &Kinds,
) -> Result<ServersFile, Error> {
    let file = read(path, env)?;
    for server in &file.servers {
        let named = server.agent.kind.as_deref().map_or(Ok(()), |kind| kinds.check(kind));
        let key = format!("mcp_servers.{}.agent", server.name);
        named.map_err(|error| strict::Error::value(path, key, error))?;
    }
    Ok(file)
}

impl Plugins {
    /// Scans the servers for the first time; a required one that fails is an error, unless the process continues and
    /// asks it again.
    pub async fn begin(
        about: Source,
        pool: Arc<Pool>,
        roster: Arc<Roster>,
        kinds: Arc<Kinds>,
        life: Life,
    ) -> Result<(Arc<Self>, Vec<AbortOnDropHandle<()>>), Error> {
        let mut found = match life {
            Life::OfSubmission => Vec::new(),
            Life::OfRun | Life::Long => mcp::ToolHost::scan(&*pool).await,
        };
        let is_needed = |one: &Absent| one.is_slow && (one.is_required || pool.known().is_empty());
        let slow = pool.absent().into_iter().filter(|one| life == Life::OfRun && is_needed(one));
        let slow: Vec<String> = slow.map(|one| one.server).collect();
        // A busy machine costs a second attempt, not the server.
        if !slow.is_empty() {
            let again = pool.retry(&slow).await;
            found.retain(|one| !slow.contains(&one.name));
            found.extend(again);
        }
        let survey = sort_out(found, &kinds);
        let required = survey.failed.iter().find(|one| pool.is_required(&one.server));
        if let Some(required) = required.filter(|_| life == Life::OfRun) {
            return Err(Error::RequiredServer(required.problem.clone()));
        }
        let warnings = RwLock::new(about.servers.warnings.clone());
        let plugins = Self {
            file: about.file,
            roster,
            kinds,
            problems: RwLock::new(problems(&about.servers.warnings, survey)),
            warnings,
            life,
            sources: RwLock::new(about.servers.sources),
            turn: tokio::sync::Mutex::default(),
            pool,
        };
        plugins.fill();
        let plugins = Arc::new(plugins);
        let mut tasks = vec![AbortOnDropHandle::new(tokio::spawn(follow(&plugins)))];
        if plugins.asks_again() {
            tasks.push(absent::keep(&plugins));
        }
        Ok((plugins, tasks))
    }

    /// Returns whether absent servers are asked again, so that a run has something to wait for.
    pub fn asks_again(&self) -> bool {
        self.life == Life::Long
    }

    /// Reads the servers file again; `None` if the servers came from another place.
    ///
    /// # Errors
    /// [`Error`] for an unusable file; also for a deleted one, because it may be in the middle of being replaced.
    pub fn read_again(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<ServersFile>, Error> {
        let Some(path) = self.file.as_deref() else { return Ok(None) };
        let was_read = self.sources.read().iter().any(|source| source == path);
        if was_read && !path.exists() {
            return Err(Error::ServersFileGone(path.to_owned()));
        }
        Ok(Some(read_checked(path, env, &self.kinds)?))
    }

    /// Applies a servers file: unchanged servers keep running, removed ones finish their calls.
    ///
    /// New servers are looked at; `again` asks all of them for their tools. A required server that fails is reported
    /// like any other, because the process is already running.
    pub async fn take_over(&self, file: ServersFile, again: bool) -> Reloaded {
        let _turn = self.turn.lock().await;
        let warnings = file.warnings.clone();
        *self.sources.write() = file.sources.clone();
        *self.warnings.write() = warnings.clone();
        let reloaded = self.pool.reload(file);
        // Agents that are gone are not offered while new ones are looked at.
        self.fill();
        let found = if again { self.pool.rescan().await } else { self.pool.look().await };
        let found = problems(&warnings, sort_out(found, &self.kinds));
        *self.problems.write() = found;
        self.fill();
        reloaded
    }

    fn fill(&self) {
        let known = self.pool.known();
        let is_known = |name: &str| known.iter().any(|server| server.name == name);
        let absent = self.pool.states().into_iter().filter(|state| !is_known(&state.server));
        let reasons: Vec<_> =
            absent.filter_map(|state| Some((state.server, state.problem?))).collect();
        self.roster.set_absences(reasons);
        let agent = |server| -> Arc<dyn Agent> { Arc::new(ServerAgent::new(server, &self.kinds)) };
        self.roster.set(known.into_iter().map(agent));
    }

    fn sources(&self) -> Vec<PathBuf> {
        let mut sources = self.sources.read().clone();
        sources.extend(
            self.file.iter().filter(|file| !sources.contains(file)).cloned().collect::<Vec<_>>(),
        );
        sources
    }
}

fn problems(warnings: &[Warning], survey: Survey) -> Vec<ServerProblem> {
    let warned = warnings.iter().map(|warning| ServerProblem {
        server: warning.server.clone(),
        problem: warning.text.clone(),
    });
    warned.chain(survey.failed).chain(survey.rejected).collect()
}

/// Updates the agents from the servers' tool definitions; keeps no process alive.
fn follow(plugins: &Arc<Plugins>) -> impl Future<Output = ()> + use<> {
    let mut changes = plugins.pool.changes();
    let plugins = Arc::downgrade(plugins);
    async move {
        while changes.changed().await.is_ok() {
            let Some(plugins) = plugins.upgrade() else { return };
            plugins.fill();
        }
    }
}
