//! Under whose id each step of a forked thread ran.

use std::collections::HashSet;

use super::{EffectRow, Effects, Result, StepRow, Store, ThreadInfo};
use crate::ids::{RunId, ThreadId};

/// A thread and its origins, if they still exist.
#[derive(Clone, Debug)]
pub struct Lineage {
    threads: Vec<Ancestor>,
}

#[derive(Clone, Debug)]
struct Ancestor {
    info: ThreadInfo,
    /// The last step that the thread asked about has of it.
    upto: u64,
    runs: HashSet<RunId>,
}

impl Lineage {
    /// Reads the lineage of a thread.
    ///
    /// # Errors
    /// Whatever the store reports.
    pub async fn read(store: &dyn Store, thread: ThreadId) -> Result<Self> {
        let mut threads = Vec::new();
        let mut next = Some((thread, u64::MAX));
        while let Some((id, upto)) = next {
            let info = store.info(id).await?;
            let runs = store.runs(id).await?.into_iter().map(|run| run.id).collect();
            next = info.forked_from.map(|(parent, shared)| (parent, shared.min(upto)));
            threads.push(Ancestor { info, upto, runs });
        }
        Ok(Self { threads })
    }

    /// Returns the thread under whose id a step ran, which keeps the step's effects.
    ///
    /// `None` for a step that a fork or an imported thread took over without them: its effects stayed with
    /// the thread it came from.
    pub fn owner(&self, step: &StepRow) -> Option<&ThreadInfo> {
        let ancestor = self.threads.iter().rev().find(|one| step.seq <= one.upto)?;
        ancestor.runs.contains(&step.run).then_some(&ancestor.info)
    }

    /// Returns the recorded effects of a step, in order; `None` if they were deleted.
    ///
    /// # Errors
    /// Whatever the store reports.
    pub async fn effects(&self, store: &dyn Effects, step: &StepRow) -> Result<Vec<EffectRow>> {
        match self.owner(step) {
            Some(owner) => store.effects(owner.id, Some(step.seq)).await,
            None => Ok(Vec::new()),
        }
    }
}
