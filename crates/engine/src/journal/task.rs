//! The journal of one running task.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::key::EffectKey;
use super::recorded::{Kept, Recorded, random_bits};
use crate::checkpoint::{
    EffectKind, EffectRow, EffectSettlement, EffectStatus, Encoded, Fence, Store, read_blob,
};
use crate::clock::{self, Clock};
use crate::failpoint::{Point, wrap};
use crate::graph::{
    Blob, EffectClass, EffectRequest, NodeError, NodeLocation, Outcome, Perform, Port, Result,
    StreamMode, Wants,
};
use crate::observer::report;

/// A pause after which another process may have claimed the thread; no lease is much shorter.
const PAUSE: Duration = Duration::from_secs(5);

/// Whether effects may be performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// An effect without a record is performed and recorded; recorded failures are returned like results.
    Live,
    /// The same, but recorded failures are tried again: a retry, or a resume after a failure.
    Again,
    /// Only recorded effects; any other one is a divergence.
    Replay,
}

/// The parts with which the holder of a thread writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claimed {
    /// The thread's fencing token.
    pub fence: Fence,
    /// The clock of the thread's store, which dates what its holders do on any machine.
    pub clock: Clock,
    /// When the thread was made, in microseconds since the Unix epoch.
    pub made_at: i64,
}

/// Receives the live events of a task.
#[async_trait]
pub trait Live: Send + Sync {
    /// Publishes a piece; never waits, and drops it if the listener is too far behind.
    fn publish(&self, mode: StreamMode, payload: Value);

    /// Returns which events are listened to.
    fn wants(&self) -> Wants;

    /// Passes an event of a subgraph on; waits while the listener is behind.
    async fn nested(&self, namespace: String, modes: Vec<StreamMode>, event: Value);
}

/// Records and recovers the effects of one task of one step.
pub struct TaskJournal {
    pub(super) store: Arc<dyn Store>,
    pub(super) claimed: Claimed,
    pub(super) place: NodeLocation,
    pub(super) mode: Mode,
    pub(super) recorded: Arc<Recorded>,
    occurrences: Mutex<HashMap<EffectKey, u32>>,
    next_number: AtomicU32,
    /// Random numbers, times and observations since the last write, which the next write includes.
    pub(super) notes: tokio::sync::Mutex<Vec<EffectRow>>,
    /// When the task was last seen to be alive.
    pub(super) alive_at: Mutex<Instant>,
    pub(super) cancel: CancellationToken,
    live: Option<Arc<dyn Live>>,
}

impl std::fmt::Debug for TaskJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskJournal").field("place", &self.place).finish_non_exhaustive()
    }
}

impl TaskJournal {
    /// Makes the journal of a task; `recorded` holds what earlier attempts at the step left.
    pub fn new(
        store: Arc<dyn Store>,
        claimed: Claimed,
        place: NodeLocation,
        mode: Mode,
        recorded: Arc<Recorded>,
        cancel: CancellationToken,
        live: Option<Arc<dyn Live>>,
    ) -> Self {
        let next_number = AtomicU32::new(recorded.next_number(place.task));
        let occurrences = Mutex::default();
        let alive_at = Mutex::new(clock::monotonic());
        Self {
            store,
            claimed,
            place,
            mode,
            recorded,
            occurrences,
            next_number,
            notes: tokio::sync::Mutex::default(),
            alive_at,
            cancel,
            live,
        }
    }

    /// Computes the key of the next effect of this kind: equal requests of a task are numbered.
    pub(super) fn key(&self, name: &str, request: &Value) -> EffectKey {
        self.next_key(name, request, request, |key| self.is_recorded(key.as_bytes()))
    }

    /// Computes the key of the next effect of this kind; `is_recorded` finds an effect that an earlier version recorded
    /// by `request_v1`.
    fn next_key(
        &self,
        name: &str,
        request: &Value,
        request_v1: &Value,
        is_recorded: impl Fn(&EffectKey) -> bool,
    ) -> EffectKey {
        let base = EffectKey::derive(&self.place, self.claimed.made_at, name, request, 0);
        let mut seen = self.occurrences.lock();
        let occurrence = seen.entry(base).or_insert(0);
        let number = *occurrence;
        *occurrence += 1;
        drop(seen);
        if self.recorded.knows(self.place.task) {
            let before = EffectKey::derive_v1(&self.place, name, request_v1, number);
            if is_recorded(&before) {
                return before;
            }
        }
        match number {
            0 => base,
            _ => EffectKey::derive(&self.place, self.claimed.made_at, name, request, number),
        }
    }

    fn is_recorded(&self, key: &[u8]) -> bool {
        self.recorded.find(self.place.task, key).is_some()
    }

    pub(super) fn found(&self, key: &[u8]) -> Option<&EffectRow> {
        match self.mode {
            Mode::Replay => self.recorded.find_again(self.place.task, key),
            Mode::Live | Mode::Again => self.recorded.find(self.place.task, key),
        }
    }

    /// Counts an outcome that is used again; a replay uses only those, and is not counted.
    pub(super) fn count_read_back(&self, row: &EffectRow) {
        if self.mode != Mode::Replay {
            report(|observer| observer.effect_read_back(row.kind.as_str()));
        }
    }

    pub(super) fn row(
        &self,
        key: &[u8],
        kind: EffectKind,
        name: &str,
        request: &Value,
    ) -> Result<EffectRow> {
        Ok(EffectRow {
            step: self.place.step,
            task: self.place.task,
            key: key.to_vec(),
            number: self.next_number.fetch_add(1, Ordering::Relaxed),
            kind,
            status: EffectStatus::Started,
            name: name.to_owned(),
            request: self.encode(request)?,
            outcome: None,
            attempt: 1,
            started_at: self.claimed.clock.now(),
            ended_at: None,
        })
    }

    pub(super) async fn settle(
        &self,
        point: Point,
        key: &EffectKey,
        status: EffectStatus,
        outcome: Option<&Value>,
        attempt: u32,
    ) -> Result<()> {
        self.keep_notes().await?;
        let outcome = outcome.map(|value| self.encode(value)).transpose()?;
        let step = self.place.step;
        let task = self.place.task;
        let end =
            EffectSettlement { step, task, key: key.as_bytes().to_vec(), status, outcome, attempt };
        let settled = self.store.settle_effect(self.claimed.fence, &end);
        wrap(point, settled).await.map_err(recorder)
    }

    /// Notes that the task is active; returns how long it was not.
    pub(super) fn seen_alive(&self) -> Duration {
        let mut alive_at = self.alive_at.lock();
        std::mem::replace(&mut *alive_at, clock::monotonic()).elapsed()
    }

    /// Checks after a pause that the process still holds the thread: a stopped process may have lost it.
    ///
    /// # Errors
    /// [`NodeError::Recorder`] with the store's refusal.
    pub(super) async fn check_after_pause(&self) -> Result<()> {
        if self.seen_alive() < PAUSE {
            return Ok(());
        }
        let current = self.store.info(self.place.thread).await.map_err(recorder)?.fence;
        self.claimed.fence.check(current).map_err(recorder)
    }

    pub(super) fn encode(&self, value: &Value) -> Result<Encoded> {
        Encoded::json(value, self.store.compress_above()).map_err(recorder)
    }

    /// Reports a request of a replay that is not in the journal.
    pub(super) fn diverged(&self, name: &str, what: &str, asked: &Value) -> NodeError {
        let message = if self.recorded.miss(self.place.task, name, asked) {
            format!("it asked for {what} with another request than the recorded run")
        } else {
            format!("it asked for {what}, which the recorded run did not")
        };
        NodeError::failed("divergence", message)
    }
}

pub(super) fn recorder(error: crate::checkpoint::Error) -> NodeError {
    NodeError::Recorder(Box::new(error))
}

#[async_trait]
impl Port for TaskJournal {
    async fn effect(&self, request: EffectRequest, perform: Perform<'_>) -> Result<Outcome> {
        let key = self.key(&request.name, &request.request);
        let found = self.found(key.as_bytes());
        if let Some(outcome) = self.read_back(found)? {
            found.inspect(|row| self.count_read_back(row));
            return Ok(outcome);
        }
        if self.mode == Mode::Replay {
            return Err(self.diverged(&request.name, &request.name, &request.request));
        }
        if self.cancel.is_cancelled() {
            return Err(NodeError::Cancelled);
        }
        match request.class {
            EffectClass::Inquiry => self.inquire(&request, key, found, perform).await,
            EffectClass::Action { repeatable } => {
                self.act(&request, repeatable, key, found, perform).await
            }
        }
    }

    async fn interrupt(&self, kind: &str, what: Value, payload: Value) -> Result<Value> {
        let is_asked =
            |key: &EffectKey| self.is_recorded(self.question_id(key.as_bytes()).0.as_bytes());
        let key = self.next_key(kind, &what, &payload, is_asked);
        self.ask(kind, payload, key.as_bytes()).await
    }

    async fn now_micros(&self) -> Result<i64> {
        self.micros(Kept::AtOnce).await
    }

    async fn noted_micros(&self) -> Result<i64> {
        self.micros(Kept::WithTheNext).await
    }

    fn unrecorded_now_micros(&self) -> i64 {
        self.claimed.clock.now().timestamp_micros()
    }

    async fn random(&self) -> Result<u64> {
        let value = self.draw(EffectKind::Random, Kept::AtOnce, || json!(random_bits())).await?;
        Ok(value.as_u64().unwrap_or_default())
    }

    async fn observed(&self, name: &str, seen: Value) -> Result<Value> {
        let last = self.noted(name)?;
        if self.mode == Mode::Replay {
            // The graph of that time did not make this observation: the present one replaces it.
            return Ok(last.unwrap_or(seen));
        }
        if last.as_ref() != Some(&seen) {
            // The same value can be observed again after another one: a replay uses the last note.
            let times = self.recorded.times_observed(self.place.task, name);
            let made_at = self.claimed.made_at;
            let name_of_key = format!("observed {name}");
            let key = EffectKey::derive(&self.place, made_at, &name_of_key, &seen, times);
            let mut row = self.row(key.as_bytes(), EffectKind::Observed, name, &seen)?;
            row.status = EffectStatus::Done;
            row.ended_at = Some(row.started_at);
            self.note(row).await;
        }
        Ok(seen)
    }

    fn noted(&self, name: &str) -> Result<Option<Value>> {
        let noted = self.recorded.observed(self.place.task, name);
        noted.map(|row| row.request.decode().map_err(recorder)).transpose()
    }

    async fn keep_notes(&self) -> Result<()> {
        Self::keep_notes(self).await
    }

    async fn read(&self, blob: &Blob, called: &str) -> Result<Arc<str>> {
        let read = read_blob(self.store.as_ref(), self.place.thread, blob, called);
        read.await.map_err(recorder)
    }

    fn emit(&self, mode: StreamMode, payload: Value) {
        if let Some(live) = &self.live {
            live.publish(mode, payload);
        }
    }

    fn wants(&self) -> Option<Wants> {
        self.live.as_ref().map(|live| live.wants())
    }

    async fn nested(&self, namespace: String, modes: Vec<StreamMode>, event: Value) {
        if let Some(live) = &self.live {
            live.nested(namespace, modes, event).await;
        }
    }

    fn is_replay(&self) -> bool {
        self.mode == Mode::Replay
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    async fn until_cancelled(&self) {
        self.cancel.cancelled().await;
    }
}
