//! Who was at a thread when: what processes note before they try to take one, and when they are through with it.
//!
//! A thread is taken in a turn and in no other way, so a process that sends had one before, and sends a thing twice only in two
//! of them. The notes are the harness's own: the database is not asked how often a thread was taken.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use nix::time::ClockId;
use perihelion::ids::ThreadId;
use serde::{Deserialize, Serialize};

use super::logs::{TURNS, lines};

/// One try of a process at a thread; noted when it begins, and once more when it has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Turn {
    pub process: u64,
    pub thread: ThreadId,
    pub began: u64,
    pub ended: Option<u64>,
}

/// A request as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub process: u64,
    pub at: u64,
    /// Whether its answer was lost on the way.
    pub lost: bool,
}

/// Returns the microseconds since the machine's start, by which all its processes date alike: no plan sets this clock wrong.
pub fn since_start() -> u64 {
    let time = ClockId::CLOCK_MONOTONIC.now().unwrap();
    time.tv_sec().unsigned_abs() * 1_000_000 + time.tv_nsec().unsigned_abs() / 1000
}

/// The turns of a run: when each began, and when it ended if it did.
#[derive(Debug, Default)]
pub struct Turns(HashMap<(ThreadId, u64), BTreeMap<u64, Option<u64>>>);

impl Turns {
    pub fn read(directory: &Path) -> Self {
        let mut turns = Self::default();
        for Turn { process, thread, began, ended } in lines(directory, TURNS) {
            turns.0.entry((thread, process)).or_default().insert(began, ended);
        }
        turns
    }

    /// Returns how many turns a process had at a thread.
    pub fn count(&self, thread: ThreadId, process: u64) -> usize {
        self.0.get(&(thread, process)).map_or(0, BTreeMap::len)
    }

    /// Looks for one among equal requests for a thread that nothing explains, and says which.
    ///
    /// A process sends such a one in a turn; once more after its answer was lost, or in another turn, of which two may
    /// lie over each other.
    pub fn unexplained(&self, thread: ThreadId, mut sent: Vec<Sent>) -> Option<String> {
        sent.sort_by_key(|one| (one.process, one.at));
        let mut before: Option<Sent> = None;
        for one in sent {
            let Sent { process, at, .. } = one;
            let turns = self.0.get(&(thread, process));
            let begun = || turns.into_iter().flat_map(|all| all.range(..=at));
            if begun().next().is_none() {
                return Some(format!("process {process} sent it without a turn"));
            }
            if let Some(before) = before.filter(|before| before.process == process && !before.lost)
            {
                let is_open = |ended: &Option<u64>| ended.is_none_or(|ended| ended > before.at);
                let open = begun().filter(|(began, ended)| **began <= before.at && is_open(ended));
                if !begun().any(|(began, _)| *began > before.at) && open.count() < 2 {
                    return Some(format!("process {process} sent it twice in a turn"));
                }
            }
            before = Some(one);
        }
        None
    }
}
