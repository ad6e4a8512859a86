//! What a subscriber received.

use std::time::Duration;

use futures::StreamExt as _;
use perihelion_engine::bus::{Subscription, ThreadEvent};

pub const DAY: Duration = Duration::from_secs(86_400);

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
