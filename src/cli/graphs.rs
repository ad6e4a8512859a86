//! The graphs of this command line's program; the stock program has only the supervisor graph.

use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;

use super::Error as CommandError;
use perihelion_agents::kinds;
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_engine::ids::ThreadId;
use perihelion_host::Hosted;
use perihelion_runtime::{Error, Graphs, Served, Threads};
use perihelion_settings::config::Settings;

static OWN: RwLock<Option<Graphs>> = RwLock::new(None);

/// Adds graphs, before a command opens its runtime.
pub(super) fn add(more: Graphs) {
    let own = own().and(more);
    *OWN.write() = Some(own);
}

/// Adds the graphs of a `langgraph.json`, if one is given; they are run for as long as what is returned is kept.
pub(super) async fn host(
    file: Option<&Path>,
    settings: &Settings,
) -> Result<Option<Hosted>, CommandError> {
    let Some(file) = file else { return Ok(None) };
    let mut hosted = perihelion_host::open(file, settings).await.map_err(CommandError::Graphs)?;
    add(std::mem::take(&mut hosted.graphs));
    Ok(Some(hosted))
}

pub(super) fn own() -> Graphs {
    OWN.read().clone().unwrap_or_default()
}

/// Opens the graph of a thread to read it; `None` if this program does not have it.
pub(super) fn of_thread(
    settings: &Settings,
    threads: &Threads,
    info: &ThreadInfo,
) -> Result<Option<Arc<dyn Served>>, Error> {
    own().offline(settings, &Arc::new(kinds()), &info.graph, threads.store())
}

/// Opens the graph of a thread that is to be replayed or changed.
///
/// # Errors
/// [`Error::UnknownGraph`] for one that this program does not have, and as [`Graphs::offline`].
pub(super) async fn to_use(
    settings: &Settings,
    threads: &Threads,
    thread: ThreadId,
) -> Result<Arc<dyn Served>, Error> {
    let info = threads.info(thread).await?;
    of_thread(settings, threads, &info)?.ok_or(Error::UnknownGraph(info.graph))
}
