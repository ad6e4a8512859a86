//! What is recorded of a step: its effects for those who look for them again, and the values that its tasks draw.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::task::{Mode, TaskJournal, recorder};
use crate::checkpoint::{EffectKind, EffectRow, EffectStatus};
use crate::failpoint::Point;
use crate::graph::Result;

/// The effects recorded for one step before it ran (again).
#[derive(Debug, Default)]
pub struct Recorded {
    rows: HashMap<u32, HashMap<Vec<u8>, EffectRow>>,
    /// The results of a replayed step so far.
    replayed: Mutex<Replayed>,
}

#[derive(Debug, Default)]
struct Replayed {
    /// Effects that were asked for again, by task and key.
    found: HashSet<(u32, Vec<u8>)>,
    missed: BTreeMap<u32, Missed>,
}

/// The first thing a task asked for in a replay that the journal does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Missed {
    /// The next recorded request under that name; `None` if there are no more.
    pub recorded: Option<Value>,
    /// The request of the replay.
    pub asked: Value,
}

impl Recorded {
    pub(super) fn knows(&self, task: u32) -> bool {
        self.rows.contains_key(&task)
    }

    /// Returns the effect of a task under a key.
    pub fn find(&self, task: u32, key: &[u8]) -> Option<&EffectRow> {
        self.rows.get(&task)?.get(key)
    }

    /// Returns the effect of a task under a key to a replay, which has then asked for it.
    pub(super) fn find_again(&self, task: u32, key: &[u8]) -> Option<&EffectRow> {
        let row = self.find(task, key)?;
        self.replayed.lock().found.insert((task, key.to_vec()));
        Some(row)
    }

    /// Returns the task's last recorded observation under a name.
    pub(super) fn observed(&self, task: u32, name: &str) -> Option<&EffectRow> {
        self.all_observed(task, name).max_by_key(|row| row.number)
    }

    pub(super) fn times_observed(&self, task: u32, name: &str) -> u32 {
        u32::try_from(self.all_observed(task, name).count()).unwrap_or(u32::MAX)
    }

    fn all_observed(&self, task: u32, name: &str) -> impl Iterator<Item = &EffectRow> {
        let rows = self.rows.get(&task).into_iter().flat_map(HashMap::values);
        rows.filter(move |row| row.kind == EffectKind::Observed && row.name == name)
    }

    /// Notes a request of a replay without a recorded outcome; returns whether the recorded run has a similar one.
    pub(super) fn miss(&self, task: u32, name: &str, asked: &Value) -> bool {
        let mut replayed = self.replayed.lock();
        let rows = self.rows.get(&task).into_iter().flat_map(HashMap::values);
        let is_left = |row: &&EffectRow| {
            !replayed.found.contains(&(task, row.key.clone())) && row.name == name
        };
        let next = rows.filter(is_left).min_by_key(|row| row.number);
        let recorded = next.and_then(|row| row.request.decode().ok());
        let is_alike = recorded.is_some();
        replayed.missed.entry(task).or_insert_with(|| Missed { recorded, asked: asked.clone() });
        is_alike
    }

    /// Returns the first task, in frontier order, with a request that a replay did not find, and the request.
    pub fn missed(&self) -> Option<(u32, Missed)> {
        self.replayed.lock().missed.first_key_value().map(|(task, missed)| (*task, missed.clone()))
    }

    /// Returns the first free number of a task's effects.
    pub fn next_number(&self, task: u32) -> u32 {
        let rows = self.rows.get(&task).into_iter().flat_map(HashMap::values);
        rows.map(|row| row.number.saturating_add(1)).max().unwrap_or(0)
    }
}

impl FromIterator<EffectRow> for Recorded {
    fn from_iter<I: IntoIterator<Item = EffectRow>>(rows: I) -> Self {
        let mut recorded = Self::default();
        for row in rows {
            recorded.rows.entry(row.task).or_default().insert(row.key.clone(), row);
        }
        recorded
    }
}

/// Sorts effects by their step.
pub fn by_step(rows: Vec<EffectRow>) -> BTreeMap<u64, Arc<Recorded>> {
    let mut steps: BTreeMap<u64, Vec<EffectRow>> = BTreeMap::new();
    for row in rows {
        steps.entry(row.step).or_default().push(row);
    }
    steps.into_iter().map(|(step, rows)| (step, Arc::new(rows.into_iter().collect()))).collect()
}

/// When a drawn value is durable.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kept {
    AtOnce,
    /// With the task's next write, or when it ends.
    WithTheNext,
}

impl TaskJournal {
    /// Returns the time of the store's clock, or the one recorded for the same draw.
    pub(super) async fn micros(&self, kept: Kept) -> Result<i64> {
        let now = || json!(self.claimed.clock.now().timestamp_micros());
        let value = self.draw(EffectKind::Clock, kept, now).await?;
        Ok(value.as_i64().unwrap_or_default())
    }

    /// Takes a drawn value, or the one recorded for the same draw.
    pub(super) async fn draw(
        &self,
        kind: EffectKind,
        kept: Kept,
        draw: impl FnOnce() -> Value,
    ) -> Result<Value> {
        let key = self.key(kind.as_str(), &Value::Null);
        if let Some(row @ EffectRow { outcome: Some(value), .. }) = self.found(key.as_bytes()) {
            self.count_read_back(row);
            return value.decode().map_err(recorder);
        }
        if self.mode == Mode::Replay {
            return Err(self.diverged(kind.as_str(), kind.as_str(), &Value::Null));
        }
        let value = draw();
        let mut row = self.row(key.as_bytes(), kind, kind.as_str(), &Value::Null)?;
        row.status = EffectStatus::Done;
        row.outcome = Some(self.encode(&value)?);
        row.ended_at = Some(row.started_at);
        match kept {
            Kept::AtOnce => self.record(Point::DrawCommit, row).await?,
            Kept::WithTheNext => self.note(row).await,
        }
        Ok(value)
    }
}

pub(super) fn random_bits() -> u64 {
    let hash = blake3::hash(uuid::Uuid::new_v4().as_bytes());
    let (bits, _) = hash.as_bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
    u64::from_le_bytes(*bits)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::checkpoint::{
        Claim, Effects as _, Fence, Leases as _, MemoryStore, NewThread, Threads as _,
    };
    use crate::graph::{NodeLocation, Port as _};
    use crate::ids::{RunId, ThreadId};
    use crate::journal::Claimed;

    /// X2
    #[tokio::test]
    async fn notes_are_written_after_a_write_that_failed() {
        let store = Arc::new(MemoryStore::new());
        let thread = ThreadId::new();
        let new = NewThread {
            id: thread,
            graph: "story".to_owned(),
            title: None,
            root: None,
            namespace: String::new(),
            tenant: "default".to_owned(),
        };
        let made = store.create(new).await.unwrap();
        let fence = Fence::new(thread, made.fence + 1);
        let place = NodeLocation {
            thread,
            run: RunId::new(),
            step: 1,
            task: 0,
            node: "a".into(),
            attempt: 1,
            namespace: "".into(),
            tenant: "default".into(),
            request: None,
        };
        let claimed = Claimed { fence, ..Claimed::default() };
        let stop = CancellationToken::new();
        let recorded = Arc::default();
        let journal =
            TaskJournal::new(store.clone(), claimed, place, Mode::Live, recorded, stop, None);
        journal.noted_micros().await.unwrap();
        assert!(journal.random().await.is_err(), "the thread is not claimed yet");
        assert!(journal.keep_notes().await.is_err());
        store.claim(Claim::new(thread, "a", Duration::from_secs(60))).await.unwrap();
        journal.random().await.unwrap();
        let rows = store.effects(thread, None).await.unwrap();
        let kinds: Vec<_> = rows.iter().map(|row| row.kind).collect();
        assert_eq!(kinds, [EffectKind::Clock, EffectKind::Random]);
    }
}
