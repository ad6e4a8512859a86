//! Opens the parts of a command: shows the progress of server discovery, waits for a database that is starting, and
//! reloads the servers when their file changes.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;

use super::{agents, environment, graphs, output};
use perihelion_agents::kinds;
use perihelion_engine::clock;
use perihelion_runtime::{
    Agents, Builder, DiscoveryProgress, Error, ReloadOutcome, Runtime, Survey, Threads, Watching,
};
use perihelion_settings::config::Settings;
use std::io::IsTerminal as _;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::task::AbortOnDropHandle;

/// How long a service waits for its database when it starts.
const PATIENCE: Duration = Duration::from_secs(60);

const WAIT: Duration = Duration::from_secs(1);

/// Time without output, before the first line and between lines.
const SILENCE: Duration = Duration::from_secs(2);

pub(super) fn builder(
    settings: Settings,
    looks: &watch::Sender<DiscoveryProgress>,
) -> Builder<'static> {
    let builder = Runtime::builder(settings, kinds()).environment(&environment);
    builder.serving(graphs::own()).with_progress(looks)
}

pub(super) async fn runtime(settings: Settings, quiet: bool) -> Result<Runtime, Error> {
    shown(quiet, async |looks| builder(settings, looks).open().await).await
}

/// Opens a runtime that continues what other processes left, once its database is reachable.
pub(super) async fn for_workers(settings: &Settings, quiet: bool) -> Result<Runtime, Error> {
    let open = async |looks: &watch::Sender<DiscoveryProgress>| {
        patient(async || builder(settings.clone(), looks).for_workers().open().await).await
    };
    shown(quiet, open).await
}

/// Opens the threads to read them, and closes them after the work.
pub(super) async fn reading<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(&Threads) -> super::Result<T>,
) -> super::Result<T> {
    let threads = Threads::open_to_read(settings).await?;
    let done = work(&threads).await;
    threads.close().await;
    done
}

/// Looks at all servers; `refresh` lists their tools again.
pub(super) async fn survey(settings: &Settings, refresh: bool) -> Result<Survey, Error> {
    let survey = async |looks: &watch::Sender<DiscoveryProgress>| {
        Agents::survey(settings, &environment, &kinds(), refresh, looks).await
    };
    shown(false, survey).await
}

/// Opens, and retries for up to [`PATIENCE`] while the database is unreachable. Warns once, immediately.
pub(super) async fn patient<T>(open: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    let begun = clock::monotonic();
    let mut is_stated = false;
    loop {
        match open().await {
            Err(error) if error.is_unreachable() && begun.elapsed() < PATIENCE => {
                if !is_stated {
                    let bound = PATIENCE.as_secs();
                    output::warning(&format!("{error}; waiting up to {bound} s for the database"));
                    is_stated = true;
                }
                clock::sleep(WAIT).await;
            }
            opened => return opened,
        }
    }
}

/// Awaits a scan of servers; unless it is `quiet`, prints every two seconds how many are known if that changed.
pub(super) async fn shown<T>(
    quiet: bool,
    looking: impl AsyncFnOnce(&watch::Sender<DiscoveryProgress>) -> T,
) -> T {
    let looks = watch::Sender::default();
    let seen = looks.subscribe();
    tokio::select! {
        biased;
        found = looking(&looks) => found,
        never = tell(quiet, seen) => match never {},
    }
}

async fn tell(quiet: bool, mut seen: watch::Receiver<DiscoveryProgress>) -> Infallible {
    loop {
        clock::sleep(SILENCE).await;
        if !seen.has_changed().unwrap_or(false) {
            continue;
        }
        let DiscoveryProgress { done, all } = *seen.borrow_and_update();
        if done < all && !quiet {
            output::note(&format!("discovering MCP servers: {done} of {all}"));
        }
    }
}

/// The reload of servers, which ends when this is dropped.
pub struct Plugins {
    _watching: Option<Watching>,
    _signal: Option<AbortOnDropHandle<()>>,
}

pub fn warn_of_servers(runtime: &Runtime) {
    for one in runtime.agents().problems().iter() {
        output::warning(&format!("MCP server {}: {}", one.server, one.problem));
    }
}

/// Takes changes of the servers file over while a command runs, also at SIGHUP.
///
/// At a terminal, SIGHUP means that the terminal is gone, and ends the process as usual.
pub fn keep_servers(runtime: &Runtime, role: &str, quiet: bool) -> Plugins {
    let reported = move |reported: ReloadOutcome<'_>| match reported {
        ReloadOutcome::Done(reloaded, problems) => {
            if reloaded.is_change() && !quiet {
                output::note(&format!("servers reloaded; {}", agents::words(reloaded)));
            }
            for one in problems {
                output::warning(&format!("MCP server {}: {}", one.server, one.problem));
            }
        }
        ReloadOutcome::Refused(error) => {
            output::warning(&format!("servers were not reloaded: {error}"));
        }
    };
    let watching = runtime.watch_servers(role, environment, Arc::new(reported));
    let is_service = role == "worker" || !std::io::stderr().is_terminal();
    let hung_up = watching.as_ref().filter(|_| is_service).map(Watching::hung_up);
    let signal = hung_up.and_then(|hung_up| {
        let mut hangups = signal(SignalKind::hangup()).ok()?;
        Some(AbortOnDropHandle::new(tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                hung_up.notify_one();
            }
        })))
    });
    Plugins { _watching: watching, _signal: signal }
}
