//! Opens the parts of a command: shows the progress of server discovery, and waits for a database that is starting.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;

use super::{environment, graphs, output};
use perihelion_agents::kinds;
use perihelion_engine::clock;
use perihelion_runtime::{Agents, Builder, DiscoveryProgress, Error, Runtime, Survey};
use perihelion_settings::config::Settings;

/// How long a service waits for its database when it starts.
const PATIENCE: Duration = Duration::from_secs(60);

const WAIT: Duration = Duration::from_secs(1);

/// Time without output, before the first line and between lines.
const SILENCE: Duration = Duration::from_secs(2);

/// Prepares a runtime with the settings and the environment of this process.
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
