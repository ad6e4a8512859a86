//! The hash chain over a thread's steps.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;

use super::dump::Form;
use super::{Codec, Error, Result, SnapshotRow, StepKind, StepRow, ThreadDump, ThreadInfo, blobs};
use crate::ids::ThreadId;

/// A fencing token above this leaves too few numbers for further claims; claims alone never reach it.
const MOST_CLAIMS: u64 = 1 << 48;

/// Computes a step's hash from the hash before it (32 zero bytes before step 1), its decoded delta and its frontier.
///
/// A step that was lost, reordered or altered changes every hash after it.
pub fn chain_hash(prev: &[u8; 32], seq: u64, delta_json: &[u8], frontier: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(prev);
    hasher.update(&seq.to_le_bytes());
    hasher.update(delta_json);
    hasher.update(frontier);
    *hasher.finalize().as_bytes()
}

/// Checks that a dump's steps are complete, in order and unaltered, no row there twice, and each text there that is
/// named; its children's included.
///
/// The first step of a thread whose beginning was dropped has no known predecessor: its own hash is
/// then taken as given. Of encrypted steps only the order can be checked; the store that encrypted them checks the rest.
pub(super) fn verify(dump: &ThreadDump) -> Result<()> {
    verify_as(Form::Thread, dump)
}

/// Checks a dump as [`verify`] does; that of an archive may also have the newest snapshot of a whole thread.
pub(super) fn verify_as(form: Form, dump: &ThreadDump) -> Result<()> {
    verify_rows(form, dump)?;
    blobs::verify(dump)
}

fn verify_rows(form: Form, dump: &ThreadDump) -> Result<()> {
    let thread = dump.info.id;
    let base = dump.base();
    let mut prev = (base == 0).then_some([0; 32]);
    let mut expected = base;
    for step in &dump.steps {
        expected += 1;
        if step.seq != expected {
            let reason = format!("step {expected} was expected in its place");
            return Err(Error::corrupt(thread, step.seq, reason));
        }
        if let Some(prev) = prev {
            verify_step(thread, &prev, step)?;
        }
        prev = Some(step.hash);
    }
    if expected != dump.info.head {
        let reason = format!("it is missing, though the thread has {} steps", dump.info.head);
        return Err(Error::corrupt(thread, expected + 1, reason));
    }
    if dump.info.fence > MOST_CLAIMS {
        let message = format!("the thread {thread} was claimed {} times", dump.info.fence);
        return Err(Error::Import(message));
    }
    let has_place = base > 0 || form == Form::Archive;
    let is_in_place = |row: &&SnapshotRow| has_place && row.seq > base && row.seq <= dump.info.head;
    if let Some(stray) = dump.returned.iter().find(|row| !is_in_place(row)) {
        let seq = stray.seq;
        let message = format!("a snapshot of step {seq} has no place in the thread {thread}");
        return Err(Error::Import(message));
    }
    once(thread, "snapshot", dump.returned.iter().map(|row| row.seq))?;
    let pending = dump.pending.iter().map(|row| (row.step, row.task));
    once(thread, "pending write", pending)?;
    once(thread, "effect", dump.effects.iter().map(|row| (row.step, row.task, &row.key)))?;
    once(thread, "run", dump.runs.iter().map(|row| row.number))?;
    once(thread, "run", dump.runs.iter().map(|row| row.id))?;
    dump.children.iter().try_for_each(|child| verify_rows(form, child))
}

/// Checks that a step follows another one, by its hash; encrypted steps are checked only by readers with the key.
fn verify_step(thread: ThreadId, prev: &[u8; 32], step: &StepRow) -> Result<()> {
    if step.delta.codec == Codec::Sealed {
        return Ok(());
    }
    let delta = step.delta.to_json_bytes()?;
    if chain_hash(prev, step.seq, &delta, &step.frontier) == step.hash {
        return Ok(());
    }
    Err(Error::unfit(thread, step.seq))
}

/// Checks a part of a thread's history, newest step first, and returns its first `limit` steps.
///
/// A step is checked with the previous one, so one more step must be read.
pub(super) fn verified(
    thread: ThreadId,
    mut steps: Vec<StepRow>,
    limit: u32,
) -> Result<Vec<StepRow>> {
    for pair in steps.windows(2) {
        if let [step, before] = pair {
            if step.seq != before.seq + 1 {
                return Err(Error::missing(thread, before.seq + 1));
            }
            verify_step(thread, &before.hash, step)?;
        }
    }
    if let Some(first) = steps.last().filter(|step| step.seq == 1) {
        verify_step(thread, &[0; 32], first)?;
    }
    steps.truncate(limit as usize);
    Ok(steps)
}

/// Checks that each row exists once, by its key.
fn once<T: Eq + Hash>(
    thread: ThreadId,
    what: &str,
    mut names: impl Iterator<Item = T>,
) -> Result<()> {
    let mut seen = HashSet::new();
    if names.all(|name| seen.insert(name)) {
        Ok(())
    } else {
        Err(Error::Import(format!("the thread {thread} has the same {what} twice")))
    }
}

/// Checks that the thread has no step beyond its head: the head moves with the step, in one write.
pub(super) fn not_beyond(thread: ThreadId, step: Option<u64>) -> Result<()> {
    let reason = "it lies beyond the newest step that the thread says it has";
    step.map_or(Ok(()), |seq| Err(Error::corrupt(thread, seq, reason)))
}

/// Checks that a thread has a step: one up to its head that was not dropped, or the last one that was.
pub(super) fn has_step(info: &ThreadInfo, base: u64, at: u64) -> Result<()> {
    if (base..=info.head).contains(&at) {
        return Ok(());
    }
    Err(Error::UnknownStep { thread: info.id, seq: at, head: info.head })
}

/// Selects those of a thread's snapshots, in the order of their steps, from which returns to earlier steps are read.
///
/// The snapshot of each return itself; if an older version wrote none, the next one, for the steps that can still be
/// read.
pub(super) fn of_returns(steps: &[StepRow], snapshots: &[u64]) -> BTreeSet<u64> {
    let returns = steps.iter().filter(|step| step.kind == StepKind::Fork);
    returns
        .filter_map(|step| snapshots.get(snapshots.partition_point(|seq| *seq < step.seq)).copied())
        .collect()
}

/// Returns the last step that steps after `from` reach; an error when one is missing before `wanted`.
pub(super) fn reached(thread: ThreadId, from: u64, steps: &[StepRow], wanted: u64) -> Result<u64> {
    let mut reached = from;
    for step in steps {
        if step.seq != reached + 1 {
            break;
        }
        reached = step.seq;
    }
    if reached < wanted {
        return Err(Error::missing(thread, reached + 1));
    }
    Ok(reached)
}
