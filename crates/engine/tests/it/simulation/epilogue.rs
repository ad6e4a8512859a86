//! Reads the thread once its story is over: steps, journal, states, a replay, a fork.

use perihelion_engine::checkpoint::{Error, NewThread, StepKind, StepRow, Store, restore};
use perihelion_engine::graph::{State, Written};
use perihelion_engine::ids::ThreadId;
use serde_json::Value;

use super::play::Stage;
use super::record::{End, Forked, Record, Reference};
use super::tale::Tale;

/// How much of the epilogue a seed gets; reading everything of every seed would halve the speed.
#[derive(Clone, Copy)]
pub struct Depth {
    pub states: bool,
    pub replay: bool,
    pub fork: bool,
}

/// Returns what is compared with a story without faults.
pub async fn reference(stage: &Stage, end: End) -> Reference {
    let head = stage.truth.info(stage.thread).await.unwrap().head;
    let newest = stage.truth.history(stage.thread, None, 1).await.unwrap();
    Reference { head, hash: newest.first().map(|step| step.hash), end }
}

pub async fn read(stage: &mut Stage, depth: Depth) {
    let store = stage.reader.store().clone();
    let thread = stage.thread;
    let info = store.info(thread).await.unwrap();
    let steps = oldest_first(store.as_ref(), thread).await;
    let effects = stage.truth.effects(thread, None).await.unwrap();
    let states =
        if depth.states { states(store.as_ref(), thread, &steps).await } else { Ok(Vec::new()) };
    let replay =
        if depth.replay { stage.reader.replay(thread, None).await.map(Some) } else { Ok(None) };
    {
        let mut board = stage.sim.board();
        let record: &mut Record = &mut board.record;
        record.base = info.head - steps.len().min(info.head as usize) as u64;
        record.head = info.head;
        record.steps = steps;
        record.effects = effects;
        match states {
            Ok(states) => record.states = states,
            Err(error) => record.surprises.push(error.to_string()),
        }
        match replay {
            Ok(replay) => record.replay = replay,
            Err(error) => record.surprises.push(error.to_string()),
        }
    }
    if depth.fork {
        fork(stage).await;
    }
}

async fn oldest_first(store: &dyn Store, thread: ThreadId) -> Vec<StepRow> {
    let mut steps = store.history(thread, None, 10_000).await.unwrap();
    steps.reverse();
    steps
}

/// Restores the thread at every step, and folds its steps without any snapshot beside it.
async fn states(
    store: &dyn Store,
    thread: ThreadId,
    steps: &[StepRow],
) -> Result<Vec<(u64, Value, Value)>, Error> {
    let mut states = Vec::new();
    if steps.first().is_none_or(|first| first.seq != 1) {
        return Ok(states);
    }
    let mut folded = Tale::default();
    for step in steps {
        for one in step.delta.decode::<Vec<Written<Tale>>>()? {
            folded.apply(one.update);
        }
        let restored = restore::<Tale>(store, thread, Some(step.seq)).await?;
        states.push((step.seq, value(&restored.state), value(&folded)));
    }
    Ok(states)
}

fn value(state: &Tale) -> Value {
    serde_json::to_value(state).unwrap()
}

/// Forks the thread, runs the fork on, takes the source away, and looks at the fork's history again.
async fn fork(stage: &mut Stage) {
    let store = stage.reader.store().clone();
    let source = stage.thread;
    let steps = stage.sim.board().record.steps.clone();
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return };
    let span = (last.seq - first.seq + 1) as usize;
    let at = first.seq + stage.sim.board().rng.below(span) as u64;
    let id = ThreadId::new();
    let new = NewThread {
        id,
        graph: "tale".to_owned(),
        title: None,
        root: None,
        namespace: String::new(),
        tenant: "default".to_owned(),
    };
    store.fork(source, at, new).await.unwrap();
    let shared = |rows: Vec<StepRow>| rows.into_iter().filter(|row| row.seq <= at).collect();
    let before: Vec<StepRow> = oldest_first(store.as_ref(), id).await;
    // The fork is a thread of its own: what is seen of it is not put down to its source.
    let seen_of_source = stage.sim.begin_record();
    stage.thread = id;
    let end = stage.play_calmly().await;
    let end = reference(stage, end).await;
    stage.thread = source;
    stage.sim.continue_with_record(seen_of_source);
    store.delete(source).await.unwrap();
    let after: Vec<StepRow> = shared(oldest_first(store.as_ref(), id).await);
    // A later input is another turn of the source; a careless person answers each thread again.
    let is_last_turn = steps.iter().all(|row| row.seq <= at || row.kind != StepKind::Input);
    let is_same_story = stage.sim.plan.is_honest && is_last_turn;
    let source = shared(steps);
    let end = Some(end);
    stage.sim.board().record.fork = Some(Forked { at, source, before, after, end, is_same_story });
}
