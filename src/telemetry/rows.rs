//! Reads what a trace is made of, and no more of the thread than that.

use super::Error;
use super::group::{Group, may_continue};
use crate::checkpoint::{EffectRow, RunRow, StepRow, Store, ThreadDump, ThreadInfo};
use crate::ids::{RunId, ThreadId};

/// Steps read at a time.
const PAGE: u32 = 64;

/// The stored rows of a thread that a projection reads.
#[derive(Clone, Debug)]
pub struct Rows {
    pub info: ThreadInfo,
    /// All runs, oldest first.
    pub runs: Vec<RunRow>,
    /// Oldest first: those of the wanted trace with the one before them, or all.
    pub steps: Vec<StepRow>,
    /// In order of step, task and number: those of the same steps, or all.
    pub effects: Vec<EffectRow>,
}

impl From<ThreadDump> for Rows {
    fn from(dump: ThreadDump) -> Self {
        Self { info: dump.info, runs: dump.runs, steps: dump.steps, effects: dump.effects }
    }
}

/// Which run's trace is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Newest,
    Number(u32),
    Run(RunId),
}

/// Reads the rows of one trace; returns them with the number of the wanted run.
///
/// # Errors
/// [`Error::NeverRan`], [`Error::UnknownRun`], and whatever the store reports.
pub async fn read(store: &dyn Store, thread: ThreadId, which: Which) -> Result<(Rows, u32), Error> {
    let info = store.info(thread).await?;
    let runs = store.runs(thread).await?;
    let newest = runs.last().ok_or(Error::NeverRan(thread))?.number;
    let at = match which {
        Which::Newest => Some(runs.len() - 1),
        Which::Number(number) => runs.iter().position(|run| run.number == number),
        Which::Run(id) => runs.iter().position(|run| run.id == id),
    };
    let run = match which {
        Which::Number(number) => number,
        _ => 0,
    };
    let at = at.ok_or(Error::UnknownRun { thread, run, newest })?;
    // By status alone, more runs may hang together than really do; the steps will tell.
    let mut first = at;
    while first > 0 && may_continue(runs[first - 1].status) {
        first -= 1;
    }
    let older = |step: &StepRow| !runs[first..].iter().any(|run| run.id == step.run);
    let mut steps: Vec<StepRow> = Vec::new();
    let mut before = None;
    loop {
        let page = store.history(thread, before, PAGE).await?;
        let last = page.len() < PAGE as usize;
        for step in page {
            before = Some(step.seq);
            let done = older(&step);
            steps.push(step);
            if done {
                break;
            }
        }
        if last || steps.last().is_some_and(&older) {
            break;
        }
    }
    steps.reverse();
    let run = runs[at].number;
    let mut rows = Rows { info, runs, steps, effects: Vec::new() };
    let (from, to) = {
        let group = Group::of(&rows, run)?;
        (group.first_step, group.last_step + 1)
    };
    for step in from..=to {
        rows.effects.extend(store.effects(thread, Some(step)).await?);
    }
    Ok((rows, run))
}
