//! Who hears what happened: every event once and in order, whichever processes died.

mod batches;
mod heard;
mod retention;
mod runs;

use std::sync::Arc;

use perihelion_engine::bus::{self, Bus, ThreadEvent};
use perihelion_engine::checkpoint::Store;
use perihelion_engine::ids::ThreadId;

use crate::store_suite::stores::Fixture;

use self::heard::*;

/// Opens the bus of a store.
pub fn bus(on: &Fixture, store: &Arc<dyn Store>) -> Arc<dyn Bus> {
    bus::open(on.url.as_deref().unwrap_or("memory:"), Arc::clone(store), DAY)
}

/// Reads all published events.
pub async fn all(bus: &Arc<dyn Bus>, thread: ThreadId) -> Vec<ThreadEvent> {
    let mut all: Vec<ThreadEvent> = Vec::new();
    loop {
        let page = bus.read(thread, all.last().map_or(0, |events| events.id)).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}
