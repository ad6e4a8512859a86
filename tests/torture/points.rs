//! Arms the points in this process: each is counted in a file that outlives it, and one is mined.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use perihelion::failpoint::{Point, Side, arm};

use super::logs::{Log, POINTS};
use super::plan::{Fate, Mine};

/// Points that lie on one side only.
const ONE_SIDED: [(Point, Side); 1] = [(Point::Fenced, Side::Before)];

/// The points of runs; the tests of archives have their own.
pub fn of_runs() -> impl Iterator<Item = Point> {
    let of_archives =
        [Point::ArchiveWrite, Point::ArchiveCommit, Point::ArchiveReturn, Point::ArchiveRemove];
    Point::ALL.iter().copied().filter(move |point| !of_archives.contains(point))
}

/// Counts every point of this process from now on, and lets the mined one go off.
pub fn count(directory: &Path, mine: Option<Mine>) {
    let log = Arc::new(Log::open(directory, POINTS));
    let reached = Arc::new(AtomicU64::new(0));
    let is_armed = arm(move |point, side| {
        // Counted before it acts: the dead count nothing.
        log.tally(2 * point as u8 + u8::from(side == Side::After));
        if let Some(mine) = mine.filter(|mine| (mine.point, mine.side) == (point, side))
            && reached.fetch_add(1, Ordering::Relaxed) + 1 == mine.time
        {
            act(mine.fate);
        }
    });
    assert!(is_armed, "this build has no failpoints");
}

fn act(fate: Fate) {
    match fate {
        Fate::Kill => raise(Signal::SIGKILL).unwrap(),
        Fate::Stop => raise(Signal::SIGSTOP).unwrap(),
        // The whole thread sleeps, as it would on a machine that is too busy.
        Fate::Pause(millis) => std::thread::sleep(Duration::from_millis(millis)),
    }
}

/// Returns how often each point was reached in a run; `on_postgres` says which there are.
pub fn counts(directory: &Path, on_postgres: bool) -> Vec<(&'static str, u64)> {
    let bytes = std::fs::read(directory.join(POINTS)).unwrap_or_default();
    let mut counts = [0; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let exists = |point: Point, side: Side| {
        // A reply can only be lost by a connection, and only Postgres keeps a queue.
        let is_remote = matches!(point, Point::CommitReread | Point::QueueTake);
        (on_postgres || !is_remote) && !ONE_SIDED.contains(&(point, side))
    };
    let all = of_runs().flat_map(|point| [(point, Side::Before), (point, Side::After)]);
    all.filter(|(point, side)| exists(*point, *side))
        .map(|(point, side)| {
            let index = 2 * point as usize + usize::from(side == Side::After);
            (point.name(side), counts[index])
        })
        .collect()
}
