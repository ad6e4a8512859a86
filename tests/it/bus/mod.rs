//! Who hears what happened: every event once and in order, whichever processes died.
#![expect(clippy::panic, reason = "a test that cannot continue has failed")]

mod batches;
mod processes;
mod retention;
mod runs;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use perihelion::bus::{self, Bus, Subscription, ThreadEvent};
use perihelion::checkpoint::Store;
use perihelion::ids::ThreadId;

use crate::store_suite::stores::Fixture;

pub const DAY: Duration = Duration::from_secs(86_400);

/// Opens the bus of a store.
pub fn bus(on: &Fixture, store: &Arc<dyn Store>) -> Arc<dyn Bus> {
    bus::open(on.url.as_deref().unwrap_or("memory:"), Arc::clone(store), DAY)
}

/// Reads everything that was told.
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

/// Hears events until a run has ended so.
pub async fn until_ended(events: &mut Subscription, status: &str) -> Vec<ThreadEvent> {
    let mut all = Vec::new();
    loop {
        let one = events.next().await.unwrap().unwrap();
        let is_end = kind(&one) == "run_ended" && one.event["status"] == status;
        all.push(one);
        if is_end {
            return all;
        }
    }
}

pub fn kind(events: &ThreadEvent) -> &str {
    events.event["type"].as_str().unwrap()
}

/// Returns the steps whose ends were told, in order.
pub fn steps(events: &[ThreadEvent]) -> Vec<u64> {
    let ends = events.iter().filter(|events| kind(events) == "checkpoint");
    ends.map(|events| events.event["step"].as_u64().unwrap()).collect()
}

/// Checks that ids follow one another.
pub fn has_no_gap(events: &[ThreadEvent]) {
    let first = events.first().map_or(0, |events| events.id);
    let ids: Vec<u64> = events.iter().map(|events| events.id).collect();
    assert_eq!(ids, (first..first + events.len() as u64).collect::<Vec<_>>());
}
