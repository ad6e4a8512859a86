//! The log of a thread's events, as a store keeps it: in batches, each with the ids of its events.

use chrono::{DateTime, Utc};

use super::Encoded;
use crate::ids::RunId;

/// A batch of events of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// Id of its first event; ids begin at 1 in each thread and have no gap.
    pub first: u64,
    /// How many events it holds, at least one.
    pub count: u32,
    pub run: RunId,
    /// Newest step whose end has been told when the batch ends.
    pub step: u64,
    /// The encoded list of the events.
    pub body: Encoded,
    /// Set by the store (database time).
    pub at: DateTime<Utc>,
}

impl EventRow {
    /// Returns the id of its last event.
    pub fn last(&self) -> u64 {
        (self.first + u64::from(self.count)).saturating_sub(1)
    }
}

/// How far a thread's log of events reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventPosition {
    /// Id of the newest event; 0 when there was none.
    pub last: u64,
    /// Newest step whose end has been told; 0 when there was none.
    pub step: u64,
}
