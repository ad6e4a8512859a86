//! Reloads the servers of a running command when the servers file changes.

use std::io::IsTerminal as _;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::task::AbortOnDropHandle;

use super::{agents, environment, output};
use perihelion_runtime::{ReloadOutcome, Runtime, Watching};

/// The reload of servers, which ends when this is dropped.
pub struct Plugins {
    _watching: Option<Watching>,
    _signal: Option<AbortOnDropHandle<()>>,
}

pub fn warn(runtime: &Runtime) {
    for one in runtime.agents().problems().iter() {
        output::warning(&format!("MCP server {}: {}", one.server, one.problem));
    }
}

/// Takes changes of the servers file over while a command runs, also at SIGHUP.
///
/// At a terminal, SIGHUP means that the terminal is gone, and ends the process as usual.
pub fn keep(runtime: &Runtime, role: &str, quiet: bool) -> Plugins {
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
