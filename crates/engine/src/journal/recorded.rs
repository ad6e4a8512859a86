//! The journal entries of earlier attempts at a step.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::checkpoint::{EffectKind, EffectRow};

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

    /// Returns how often a task noted an observation under a name.
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

    /// Returns the first task, in frontier order, that asked in vain in a replay, and for what.
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
