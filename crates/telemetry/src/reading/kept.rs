//! Cached traces that can no longer change, so that they are read once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use serde::Serialize;

use crate::{About, Span, TraceId};
use perihelion_engine::ids::ThreadId;

/// Bytes kept in all, measured as JSON: about fifty thousand spans without content.
const BYTES: usize = 64 * 1024 * 1024;

/// Trace ids whose place is remembered; eight times more than a search looks at.
const PLACES: usize = 16_000;

/// The key of a trace: its thread, and the newest run in it.
type Place = (ThreadId, u32);

#[derive(Debug)]
struct Trace {
    thread_updated: DateTime<Utc>,
    spans: Arc<Vec<Span>>,
    bytes: usize,
}

/// The oldest one is removed if there is no space.
#[derive(Debug, Default)]
pub(super) struct Kept {
    traces: HashMap<Place, Trace>,
    order: VecDeque<Place>,
    bytes: usize,
    places: HashMap<TraceId, Place>,
}

impl Kept {
    /// Returns a kept trace, if its thread has not been touched since.
    pub(super) fn get(&self, place: Place, updated: DateTime<Utc>) -> Option<Arc<Vec<Span>>> {
        let trace = self.traces.get(&place)?;
        (trace.thread_updated == updated).then(|| Arc::clone(&trace.spans))
    }

    /// Keeps a trace of this size, unless it takes much of the space.
    pub(super) fn keep(
        &mut self,
        place: Place,
        updated: DateTime<Utc>,
        spans: &Arc<Vec<Span>>,
        bytes: usize,
    ) {
        if bytes > BYTES / 4 {
            return;
        }
        let trace = Trace { thread_updated: updated, spans: Arc::clone(spans), bytes };
        self.bytes += bytes;
        match self.traces.insert(place, trace) {
            Some(older) => self.bytes -= older.bytes,
            None => self.order.push_back(place),
        }
        while self.bytes > BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(dropped) = self.traces.remove(&oldest) {
                self.bytes -= dropped.bytes;
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

/// Returns the size of a span; a request to a model has more than the messages that are shown.
pub(super) fn size(span: &Span) -> usize {
    let request = match &span.about {
        About::Chat { input: Some(input), .. } => length(input),
        _ => 0,
    };
    length(span) + request
}

fn length(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SpanId, Status};

    fn trace(thread: ThreadId, text: usize) -> Arc<Vec<Span>> {
        let about =
            About::Stage { agent: "a".into(), stage: "s".into(), error: Some("x".repeat(text)) };
        Arc::new(vec![Span {
            trace_id: TraceId::of_run(thread, 1),
            span_id: SpanId::root(thread, 1),
            parent: None,
            name: "stage s".into(),
            start: DateTime::UNIX_EPOCH,
            end: DateTime::UNIX_EPOCH,
            status: Status::Ok,
            open: false,
            links: Vec::new(),
            thread,
            within: None,
            run: 1,
            step: 1,
            node: None,
            spent: None,
            about,
        }])
    }

    #[test]
    fn the_oldest_traces_are_removed_when_their_texts_fill_the_space() {
        let thread = ThreadId(uuid::Uuid::nil());
        let mut kept = Kept::default();
        for (run, text) in (1..).zip([BYTES / 4 - 1024; 5].into_iter().chain([BYTES / 2])) {
            // The last one is too large, and removes none.
            let spans = trace(thread, text);
            let bytes = spans.iter().map(size).sum();
            kept.keep((thread, run), DateTime::UNIX_EPOCH, &spans, bytes);
        }
        let is_kept = |run| kept.get((thread, run), DateTime::UNIX_EPOCH).is_some();
        assert_eq!([1, 2, 3, 6].map(is_kept), [false, true, true, false]);
    }
}
