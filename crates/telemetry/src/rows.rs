//! Reads the rows of a trace, and no other part of the thread.

use std::ops::RangeInclusive;

use super::group::{Group, may_continue};
use super::{Error, Result};
use perihelion_engine::checkpoint::{
    self, EffectRow, RunRow, RunStatus, StepRow, Store, ThreadFilter, ThreadInfo, check_family,
};
use perihelion_engine::graph::subgraph_step;
use perihelion_engine::ids::{RunId, ThreadId};

/// Steps read at a time.
const PAGE: u32 = 64;

#[derive(Clone, Debug)]
pub struct Rows {
    pub info: ThreadInfo,
    /// All runs, oldest first.
    pub runs: Vec<RunRow>,
    /// Oldest first: those of the requested trace with the previous one, or all.
    pub steps: Vec<StepRow>,
    /// In order of step, task and number: those of the same steps, or all.
    pub effects: Vec<EffectRow>,
    /// Threads of subgraphs at any depth, complete: those of the same steps' nodes, or all.
    pub children: Vec<Rows>,
}

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
pub async fn read(store: &dyn Store, thread: ThreadId, which: Which) -> Result<(Rows, u32)> {
    let (mut rows, run) = read_steps(store, thread, which).await?;
    let (from, to) = {
        let group = Group::of(&rows, run)?;
        (group.first_step, group.last_step + 1)
    };
    for step in from..=to {
        rows.effects.extend(store.effects(thread, Some(step)).await?);
    }
    rows.children = children(store, &rows.info, from..=to).await?;
    let members = std::iter::once(&rows).chain(&rows.children);
    let members: Vec<_> = members.map(|one| (&one.info, &*one.steps)).collect();
    check_family(store, &members).await?;
    Ok((rows, run))
}

/// As [`read`], without the effects and the subgraphs.
async fn read_steps(store: &dyn Store, thread: ThreadId, which: Which) -> Result<(Rows, u32)> {
    let info = store.info(thread).await?;
    let runs = store.runs(thread).await?;
    let newest = runs.last().ok_or(Error::NeverRan(thread))?.number;
    let at = match which {
        Which::Newest => Some(newest_with_steps(store, thread, &runs).await?),
        Which::Number(number) => runs.iter().position(|run| run.number == number),
        Which::Run(id) => runs.iter().position(|run| run.id == id),
    };
    let run = match which {
        Which::Number(number) => number,
        _ => 0,
    };
    let at = at.ok_or(Error::UnknownRun { thread, run, newest })?;
    // By status alone, more runs may seem to belong together than really do; the steps decide.
    let mut first = at;
    while first > 0 && may_continue(runs[first - 1].status) {
        first -= 1;
    }
    let older = |step: &StepRow| !runs[first..].iter().any(|run| run.id == step.run);
    let steps = steps_back_to(store, thread, older).await?;
    checkpoint::check_newest(store, &info, steps.last()).await?;
    let run = runs[at].number;
    Ok((Rows { info, runs, steps, effects: Vec::new(), children: Vec::new() }, run))
}

/// Finds the newest run, except one that ended as done without a step: that is the end of a process that came after
/// another one had finished the thread.
async fn newest_with_steps(store: &dyn Store, thread: ThreadId, runs: &[RunRow]) -> Result<usize> {
    let last = runs.len() - 1;
    if runs[last].status != RunStatus::Done {
        return Ok(last);
    }
    let step = store.history(thread, None, 1).await?;
    let of_step = step.first().and_then(|step| runs.iter().rposition(|run| run.id == step.run));
    Ok(of_step.unwrap_or(last))
}

/// Returns the number of the first run in a run's trace, from which the trace's ID derives.
///
/// One query for a run that opens a trace; a run that continues with another reads that one's steps as well.
pub(super) async fn first_run(store: &dyn Store, thread: ThreadId, run: RunId) -> Result<u32> {
    let runs = store.runs(thread).await?;
    let newest = runs.last().ok_or(Error::NeverRan(thread))?.number;
    let unknown = Error::UnknownRun { thread, run: 0, newest };
    let at = runs.iter().position(|row| row.id == run).ok_or(unknown)?;
    if at == 0 || !may_continue(runs[at - 1].status) {
        return Ok(runs[at].number);
    }
    let (rows, number) = read_steps(store, thread, Which::Run(run)).await?;
    Ok(Group::of(&rows, number)?.first().number)
}

/// Reads steps from the newest back to the first that is `older`, that one included; oldest first.
async fn steps_back_to(
    store: &dyn Store,
    thread: ThreadId,
    older: impl Fn(&StepRow) -> bool,
) -> Result<Vec<StepRow>> {
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
    Ok(steps)
}

/// Reads the threads of the subgraphs that nodes of these steps ran, and of those within them.
async fn children(
    store: &dyn Store,
    info: &ThreadInfo,
    steps: RangeInclusive<u64>,
) -> Result<Vec<Rows>> {
    let filter = ThreadFilter { root: Some(info.top()), ..Default::default() };
    let mut children = Vec::new();
    for child in store.list(&filter).await? {
        if subgraph_step(&child.namespace, &info.namespace)
            .is_none_or(|step| !steps.contains(&step))
        {
            continue;
        }
        children.push(Rows {
            runs: store.runs(child.id).await?,
            steps: steps_back_to(store, child.id, |_| false).await?,
            effects: store.effects(child.id, None).await?,
            children: Vec::new(),
            info: child,
        });
    }
    Ok(children)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subgraphs_place_names_the_step_of_each_graph_around_it() {
        assert_eq!(subgraph_step("team:3:0|deep:2:1", ""), Some(3));
        assert_eq!(subgraph_step("team:3:0|deep:2:1", "team:3:0"), Some(2));
        assert_eq!(subgraph_step("a:b:7:1", ""), Some(7));
        assert_eq!(subgraph_step("team:3:0", "team:3:0"), None);
        assert_eq!(subgraph_step("team:3:01", "team:3:0"), None);
    }
}
