//! Where a run leaves its events for the publisher: bounded, and nobody ever waits at it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Notify;

use crate::graph::{EndStatus, RunEvent, State, StreamMode, join_pieces};

/// Events that may wait for the database; a run of a second makes some dozens.
const EVENTS: usize = 1_024;

/// Bytes of JSON that may wait, as far as [`weight`] tells, so that long previews cannot fill memory while the database is slow.
const BYTES: usize = 1 << 20;

/// Bytes of text that pieces of an answer are joined to.
const PIECE: usize = 16 << 10;

/// An event that waits to be written.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// The step whose end it tells, if it is such an event.
    pub(super) ends: Option<u64>,
    pub(super) event: EventJson,
    /// The task that told it, by step and index.
    of: Option<(u64, u32)>,
    size: usize,
}

/// An event as JSON: written once, unless it is a piece of an answer that others are joined to.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum EventJson {
    Whole(Box<RawValue>),
    Piece(Value),
}

impl EventJson {
    /// Writes an event down.
    pub(super) fn whole<S: State>(event: &RunEvent<S>) -> Option<Self> {
        to_raw_value(event).ok().map(Self::Whole)
    }

    /// Returns how many bytes it takes, about.
    fn size(&self) -> usize {
        match self {
            Self::Whole(text) => text.get().len(),
            Self::Piece(value) => weight(value),
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    /// Newest committed step, where it is known.
    pub(super) head: Option<u64>,
    pub(super) status: EndStatus,
    pub(super) error: Option<String>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    dropped: u64,
    ending: Option<Ending>,
}

#[derive(Default)]
pub(super) struct EventQueue {
    queue: Mutex<Queue>,
    /// There is something to write.
    filled: Notify,
    /// The run has ended.
    ended: Notify,
}

/// Takes a run's events; cheap to clone.
#[derive(Clone)]
pub struct EventSender(pub(super) Arc<EventQueue>);

impl EventSender {
    /// Takes an event without ever waiting.
    ///
    /// Pieces of an answer are joined while they wait. When the publisher is too far behind, an event is left
    /// out; the end of a step is told all the same, by the step's row. States and updates are left out always.
    pub fn tell<S: State>(&self, event: &RunEvent<S>) {
        let mut ends = None;
        let mut of = None;
        let mut is_piece = false;
        match event {
            RunEvent::Values { .. } | RunEvent::Update { .. } => return,
            RunEvent::Checkpoint { step, .. } => ends = Some(*step),
            RunEvent::Published { mode, step, task, .. } => {
                (of, is_piece) = (Some((*step, *task)), *mode == StreamMode::Messages);
            }
            RunEvent::TaskStarted { step, task, .. } | RunEvent::TaskEnded { step, task, .. } => {
                of = Some((*step, *task));
            }
            _ => {}
        }
        let json = if is_piece {
            serde_json::to_value(event).ok().map(EventJson::Piece)
        } else {
            EventJson::whole(event)
        };
        let Some(event) = json else { return };
        let size = event.size();
        self.0.put(Waiting { ends, event, of, size });
    }
}

impl EventQueue {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, new: Waiting) {
        {
            let mut queue = self.lock();
            let is_full = queue.waiting.len() >= EVENTS || queue.bytes + new.size > BYTES;
            if let EventJson::Piece(piece) = &new.event
                && queue.bytes + new.size <= BYTES
            {
                let before = queue.waiting.iter_mut().rev().find(|one| one.of == new.of);
                if let Some(before) = before.filter(|one| one.size < PIECE)
                    && let EventJson::Piece(text) = &mut before.event
                    && join_pieces(text, piece)
                {
                    before.size += new.size;
                    queue.bytes += new.size;
                    return;
                }
            }
            if is_full {
                queue.dropped += 1;
                return;
            }
            queue.bytes += new.size;
            queue.waiting.push_back(new);
        }
        self.filled.notify_one();
    }

    pub(super) fn end(&self, ending: Ending) {
        self.lock().ending = Some(ending);
        self.filled.notify_one();
        self.ended.notify_one();
    }

    /// Returns when something waits to be written, or the run has ended.
    pub(super) async fn filled(&self) {
        loop {
            {
                let queue = self.lock();
                if !queue.waiting.is_empty() || queue.ending.is_some() {
                    return;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Returns when the run has ended.
    pub(super) async fn ended(&self) {
        while self.lock().ending.is_none() {
            self.ended.notified().await;
        }
    }

    /// Takes everything that waits, with how the run ended if it has.
    pub(super) fn take(&self) -> (Vec<Waiting>, Option<Ending>) {
        let mut queue = self.lock();
        queue.bytes = 0;
        (queue.waiting.drain(..).collect(), queue.ending.take())
    }

    /// Returns how many events were left out.
    pub(super) fn dropped(&self) -> u64 {
        self.lock().dropped
    }
}

/// Returns about how many bytes an event takes as JSON: what is long in it is text.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| weight(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + 4 + weight(value)).sum::<usize>() + 2
        }
        Value::Number(_) => 8,
        Value::Null | Value::Bool(_) => 5,
    }
}
