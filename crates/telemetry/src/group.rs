//! Which runs make one trace.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::{Error, Result, Rows};
use perihelion_engine::checkpoint::{RunRow, RunStatus, StepKind, StepRow};
use perihelion_engine::ids::RunId;

/// The runs of one trace, and the part of the thread that is theirs.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    pub runs: &'a [RunRow],
    pub previous: Option<&'a RunRow>,
    /// The start of the next trace; `None` for the newest one.
    pub until: Option<DateTime<Utc>>,
    pub first_step: u64,
    /// Newest step committed in it; `first_step - 1` without one.
    pub last_step: u64,
}

/// Returns whether a run that ended so may be resumed in the same trace.
///
/// `running` counts: its process died, or it is the one under way.
pub(super) fn may_continue(status: RunStatus) -> bool {
    !matches!(status, RunStatus::Done | RunStatus::Interrupted)
}

impl<'a> Group<'a> {
    /// Finds the trace of a run.
    ///
    /// A run belongs to the trace of the previous run if that one crashed, failed or was stopped, and it has no input
    /// and no edit of its own. Everything else opens a trace: the first run, a new turn, a resume after a person's
    /// answer, an edit.
    pub(super) fn of(rows: &'a Rows, run: u32) -> Result<Self> {
        let thread = rows.info.id;
        let newest = rows.runs.last().ok_or(Error::NeverRan(thread))?.number;
        let unknown = Error::UnknownRun { thread, run, newest };
        let at = rows.runs.iter().position(|row| row.number == run).ok_or(unknown)?;
        let opened = |row: &RunRow| {
            rows.steps.iter().any(|step| step.run == row.id && step.kind != StepKind::Loop)
        };
        let continues = |index: usize| {
            index > 0 && may_continue(rows.runs[index - 1].status) && !opened(&rows.runs[index])
        };
        let first = (0..=at).rev().find(|index| !continues(*index)).unwrap_or(0);
        let next = (at + 1..rows.runs.len()).find(|index| !continues(*index));
        let end = next.unwrap_or(rows.runs.len());
        let numbers: HashMap<RunId, u32> =
            rows.runs.iter().map(|row| (row.id, row.number)).collect();
        // Steps of runs unknown here are history shared with another thread, so they are older.
        let number = |step: &StepRow| numbers.get(&step.run).copied();
        let from = rows.runs[first].number;
        let to = rows.runs[end - 1].number;
        let newest_step = |upto: u32| {
            let steps = rows.steps.iter().filter(|step| number(step).is_none_or(|n| n < upto));
            steps.map(|step| step.seq).max().unwrap_or(0)
        };
        let of_group =
            |step: &&StepRow| number(step).is_some_and(|number| (from..=to).contains(&number));
        let oldest = rows.steps.iter().find(of_group).map(|step| step.seq);
        if oldest.is_none() && rows.runs[end - 1].status == RunStatus::Done {
            let has_older = newest_step(from) > 0;
            return Err(Error::Truncated { thread, run, has_older });
        }
        Ok(Self {
            runs: &rows.runs[first..end],
            previous: first.checked_sub(1).map(|index| &rows.runs[index]),
            until: next.map(|index| rows.runs[index].started_at),
            first_step: oldest.unwrap_or_else(|| newest_step(from) + 1),
            last_step: newest_step(to + 1),
        })
    }

    pub(super) fn first(&self) -> &'a RunRow {
        &self.runs[0]
    }

    pub(super) fn last(&self) -> &'a RunRow {
        &self.runs[self.runs.len() - 1]
    }

    pub(super) fn is_closed(&self) -> bool {
        self.until.is_some() || !may_continue(self.last().status)
    }
}
