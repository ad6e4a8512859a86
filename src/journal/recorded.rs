//! What earlier attempts at a step left in the journal.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::checkpoint::EffectRow;

/// The effects recorded for one step before it ran (again).
#[derive(Debug, Default)]
pub struct Recorded {
    rows: HashMap<u32, HashMap<Vec<u8>, EffectRow>>,
}

impl Recorded {
    /// Returns the effect of a task under a key.
    pub fn find(&self, task: u32, key: &[u8]) -> Option<&EffectRow> {
        self.rows.get(&task)?.get(key)
    }

    /// Returns the first free number of a task's effects.
    pub fn next_number(&self, task: u32) -> u32 {
        let rows = self.rows.get(&task).into_iter().flat_map(HashMap::values);
        rows.map(|row| row.number + 1).max().unwrap_or(0)
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
