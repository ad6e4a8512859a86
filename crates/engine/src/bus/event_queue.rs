//! The queue of a run's events for the publisher: bounded, and its senders never wait.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Notify;

use crate::graph::{EndStatus, RunEvent, State, StreamMode, join_pieces};

/// Events that may wait for the database; a run of a second makes some dozens.
const EVENTS: usize = 1_024;

/// Bytes of JSON that can wait, by the estimate of [`weight`], so that long previews cannot fill memory while the
/// database is slow.
const BYTES: usize = 1 << 20;

/// Bytes of text that pieces of an answer are joined to.
const PIECE: usize = 16 << 10;

#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// The step that the event ends, if it ends one.
    pub(super) ends: Option<u64>,
    pub(super) event: EventJson,
    /// The task of the event, by step and index.
    of: Option<(u64, u32)>,
    size: usize,
}

/// An event as JSON: serialized once, unless it is a piece of an answer that later pieces extend.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum EventJson {
    Whole(Box<RawValue>),
    Piece(Value),
}

impl EventJson {
    pub(super) fn whole<S: State>(event: &RunEvent<S>) -> Option<Self> {
        to_raw_value(event).ok().map(Self::Whole)
    }

    fn size(&self) -> usize {
        match self {
            Self::Whole(text) => text.get().len(),
            Self::Piece(value) => weight(value),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Ending {
    /// Newest committed step, if it is known.
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
    ended: Notify,
}

/// Takes a run's events; cheap to clone.
#[derive(Clone)]
pub struct EventSender(pub(super) Arc<EventQueue>);

impl EventSender {
    /// Takes an event without ever waiting.
    ///
    /// Pieces of an answer are joined while they wait. If the publisher is too far behind, an event is left out; the
    /// end of a step is still published from the step's row. States and updates are left out always.
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
    fn put(&self, new: Waiting) {
        {
            let mut queue = self.queue.lock();
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
        self.queue.lock().ending = Some(ending);
        self.filled.notify_one();
        self.ended.notify_one();
    }

    /// Returns when something waits to be written, or the run has ended.
    pub(super) async fn filled(&self) {
        loop {
            {
                let queue = self.queue.lock();
                if !queue.waiting.is_empty() || queue.ending.is_some() {
                    return;
                }
            }
            self.filled.notified().await;
        }
    }

    pub(super) async fn ended(&self) {
        while self.queue.lock().ending.is_none() {
            self.ended.notified().await;
        }
    }

    /// Takes everything that waits, with how the run ended if it has.
    pub(super) fn take(&self) -> (Vec<Waiting>, Option<Ending>) {
        let mut queue = self.queue.lock();
        queue.bytes = 0;
        (queue.waiting.drain(..).collect(), queue.ending.take())
    }

    pub(super) fn dropped(&self) -> u64 {
        self.queue.lock().dropped
    }
}

/// Returns the approximate size of an event as JSON, in bytes: its texts determine it.
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
