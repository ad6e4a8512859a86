//! The graphs of the program that this command line is of; the stock program has none beside the supervisor graph.

use std::sync::{Arc, OnceLock};

use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_runtime::{Error, Graphs, Served, Threads};
use perihelion_settings::config::Settings;

static OWN: OnceLock<Graphs> = OnceLock::new();

/// Sets the graphs, once, before a command runs.
pub(super) fn set(own: Graphs) {
    // A process has one command line; a second one would find the same graphs.
    let _ = OWN.set(own);
}

/// Returns the graphs.
pub(super) fn own() -> Graphs {
    OWN.get().cloned().unwrap_or_default()
}

/// Opens the graph of a thread to read and replay it; none for one that this program does not have.
///
/// # Errors
/// As [`Graphs::offline`].
pub(super) fn of_thread(
    settings: &Settings,
    threads: &Threads,
    info: &ThreadInfo,
) -> Result<Option<Arc<dyn Served>>, Error> {
    own().offline(settings, &info.graph, threads.store())
}
