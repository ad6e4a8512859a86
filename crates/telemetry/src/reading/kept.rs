//! Cached traces that can no longer change, so that they are read once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::{Span, TraceId};
use perihelion_engine::ids::ThreadId;

/// Spans kept in all; at about a kilobyte each without content, some fifty megabytes.
const SPANS: usize = 50_000;

/// Trace ids whose place is remembered; eight times more than a search looks at.
const PLACES: usize = 16_000;

/// The key of a trace: its thread, and the newest run in it.
type Place = (ThreadId, u32);

/// The oldest one is removed if there is no space.
#[derive(Debug, Default)]
pub(super) struct Kept {
    traces: HashMap<Place, (DateTime<Utc>, Arc<Vec<Span>>)>,
    order: VecDeque<Place>,
    spans: usize,
    places: HashMap<TraceId, Place>,
}

impl Kept {
    /// Returns a kept trace, if its thread has not been touched since.
    pub(super) fn get(&self, place: Place, updated: DateTime<Utc>) -> Option<Arc<Vec<Span>>> {
        let (read_at, spans) = self.traces.get(&place)?;
        (*read_at == updated).then(|| Arc::clone(spans))
    }

    pub(super) fn keep(&mut self, place: Place, updated: DateTime<Utc>, spans: &Arc<Vec<Span>>) {
        if let Some((_, older)) = self.traces.insert(place, (updated, Arc::clone(spans))) {
            self.spans -= older.len();
        } else {
            self.order.push_back(place);
        }
        self.spans += spans.len();
        while self.spans > SPANS {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some((_, dropped)) = self.traces.remove(&oldest) {
                self.spans -= dropped.len();
            }
        }
    }

    pub(super) fn place(&mut self, id: TraceId, place: Place) {
        if self.places.len() >= PLACES {
            self.places.clear();
        }
        self.places.insert(id, place);
    }

    pub(super) fn place_of(&self, id: TraceId) -> Option<Place> {
        self.places.get(&id).copied()
    }
}
