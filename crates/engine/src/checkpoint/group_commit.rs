//! Group commit: writers that arrive during a write share the next one.
//!
//! A writer that finds a free lane writes alone, at once. A writer without a free lane waits. A writer that leaves a
//! lane gives it, with all waiting jobs, to the first writer in the queue, which writes for all of them. A single
//! writer therefore pays no cost for the grouping, and a group makes fewer and larger writes (the idea of group commit:
//! DeWitt et al., "Implementation Techniques for Main Memory Database Systems", 1984).

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The writers of one store; `J` is the data to write, `R` its result.
pub(super) struct GroupCommit<J, R> {
    queue: Arc<Mutex<Queue<J, R>>>,
    /// Jobs written together at most.
    most: usize,
}

struct Queue<J, R> {
    /// Free lanes; while there is one, writers do not wait.
    free: usize,
    waiting: Vec<Waiting<J, R>>,
}

struct Waiting<J, R> {
    job: J,
    hears: oneshot::Sender<Word<J, R>>,
}

enum Word<J, R> {
    Written(R),
    /// It leads the next write: its job returns, with the jobs of the other writers.
    Lead(Batch<J, R>),
}

pub(super) enum Turn<J, R> {
    /// Write your own, and keep the lane until that has ended.
    Alone(Lane<J, R>),
    /// Write all of these.
    Lead(Batch<J, R>),
    /// Another writer wrote it.
    Written(R),
    /// The future of its leader was dropped; the job may be written or not.
    Lost,
}

/// The right to write; dropping it passes it on.
pub(super) struct Lane<J, R>(Option<GroupCommit<J, R>>);

/// Several jobs to be written together, the leader's own first.
pub(super) struct Batch<J, R> {
    lane: Lane<J, R>,
    jobs: Vec<J>,
    /// All but the leader, in the order of the jobs behind the first.
    others: Vec<oneshot::Sender<Word<J, R>>>,
}

// By hand: a derived one would ask for jobs and results that can be cloned.
impl<J, R> Clone for GroupCommit<J, R> {
    fn clone(&self) -> Self {
        Self { queue: Arc::clone(&self.queue), most: self.most }
    }
}

impl<J, R> GroupCommit<J, R> {
    /// Makes `lanes` ways to write at the same time, each with at most `most` jobs together.
    pub(super) fn new(lanes: usize, most: usize) -> Self {
        let queue = Queue { free: lanes, waiting: Vec::new() };
        Self { queue: Arc::new(Mutex::new(queue)), most }
    }

    /// Waits for a turn; `job` is called only if the writer has to wait.
    pub(super) async fn turn(&self, job: impl FnOnce() -> J) -> Turn<J, R> {
        let heard = {
            let mut queue = self.queue.lock();
            if queue.free > 0 {
                queue.free -= 1;
                return Turn::Alone(self.lane());
            }
            let (hears, heard) = oneshot::channel();
            queue.waiting.push(Waiting { job: job(), hears });
            heard
        };
        match heard.await {
            Ok(Word::Written(result)) => Turn::Written(result),
            Ok(Word::Lead(batch)) => Turn::Lead(batch),
            Err(_) => Turn::Lost,
        }
    }

    fn lane(&self) -> Lane<J, R> {
        Lane(Some(self.clone()))
    }

    /// Passes a lane to the first waiting writer, or sets it free.
    fn pass_on(&self) {
        let mut queue = self.queue.lock();
        // Writers that stopped waiting never began to write.
        queue.waiting.retain(|waiting| !waiting.hears.is_closed());
        while !queue.waiting.is_empty() {
            let count = queue.waiting.len().min(self.most);
            let mut taken = queue.waiting.drain(..count);
            let Some(first) = taken.next() else { break };
            let mut jobs = vec![first.job];
            let mut others = Vec::with_capacity(count);
            for waiting in taken {
                jobs.push(waiting.job);
                others.push(waiting.hears);
            }
            match first.hears.send(Word::Lead(Batch { lane: self.lane(), jobs, others })) {
                Ok(()) => return,
                // It stopped waiting just now: the others wait on, and the lane is still ours to hand over.
                Err(Word::Lead(Batch { mut lane, jobs, others })) => {
                    lane.0 = None;
                    let back = jobs.into_iter().skip(1).zip(others);
                    let back = back.map(|(job, hears)| Waiting { job, hears });
                    queue.waiting.splice(..0, back);
                }
                Err(Word::Written(_)) => {}
            }
        }
        queue.free += 1;
    }
}

impl<J, R> Drop for Lane<J, R> {
    fn drop(&mut self) {
        if let Some(home) = self.0.take() {
            home.pass_on();
        }
    }
}

impl<J, R> Batch<J, R> {
    /// Returns the jobs, the leader's own first.
    pub(super) fn jobs(&self) -> &[J] {
        &self.jobs
    }

    /// Returns the lane of a batch that holds only the leader's own job.
    pub(super) fn alone(self) -> Result<Lane<J, R>, Self> {
        if self.others.is_empty() { Ok(self.lane) } else { Err(self) }
    }

    /// Sends every other writer the result of its job, in the order of the jobs; returns the leader's result.
    pub(super) fn tell(self, results: impl IntoIterator<Item = R>) -> Option<R> {
        let Self { lane, others, .. } = self;
        let mut results = results.into_iter();
        let own = results.next();
        // The next batch is on its way before this one's writers wake.
        drop(lane);
        for (hears, result) in others.into_iter().zip(results) {
            // One that has stopped waiting needs no answer.
            let _ = hears.send(Word::Written(result));
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn lone(turn: Turn<u32, u32>) -> Lane<u32, u32> {
        match turn {
            Turn::Alone(lane) => lane,
            _ => panic!("a free lane was not given"),
        }
    }

    #[tokio::test]
    async fn waiting_writes_are_written_by_the_first_waiter() {
        let group_commit = GroupCommit::<u32, u32>::new(1, 8);
        let lane = lone(group_commit.turn(|| 0).await);
        let mut first = Box::pin(group_commit.turn(|| 1));
        let mut second = Box::pin(group_commit.turn(|| 2));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(lane);
        let Turn::Lead(batch) = first.await else { panic!("the first leads") };
        assert_eq!(batch.jobs(), [1, 2]);
        assert_eq!(batch.tell([10, 20]), Some(10));
        assert!(matches!(second.await, Turn::Written(20)));
        lone(group_commit.turn(|| 3).await);
    }

    #[tokio::test]
    async fn a_batch_is_limited_and_the_rest_follows_in_the_next_one() {
        let group_commit = GroupCommit::<u32, u32>::new(1, 2);
        let lane = lone(group_commit.turn(|| 0).await);
        let mut waiting: Vec<_> =
            (1..=3).map(|job| Box::pin(group_commit.turn(move || job))).collect();
        for turn in &mut waiting {
            assert!(turn.as_mut().now_or_never().is_none());
        }
        drop(lane);
        let Turn::Lead(batch) = waiting.remove(0).await else { panic!("the first leads") };
        assert_eq!(batch.jobs(), [1, 2]);
        batch.tell([10, 20]);
        let Turn::Lead(batch) = waiting.remove(1).await else { panic!("the third leads") };
        assert_eq!(batch.jobs(), [3]);
    }

    #[tokio::test]
    async fn a_leader_dropped_during_its_write_leaves_the_rest_in_doubt_and_the_lane_free() {
        let group_commit = GroupCommit::<u32, u32>::new(1, 8);
        let lane = lone(group_commit.turn(|| 0).await);
        let mut first = Box::pin(group_commit.turn(|| 1));
        let mut second = Box::pin(group_commit.turn(|| 2));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(lane);
        let Turn::Lead(batch) = first.await else { panic!("the first leads") };
        drop(batch);
        assert!(matches!(second.await, Turn::Lost));
        lone(group_commit.turn(|| 3).await);
    }

    #[tokio::test]
    async fn a_write_dropped_while_waiting_is_not_written_and_leaves_the_lane_usable() {
        let group_commit = GroupCommit::<u32, u32>::new(1, 8);
        for reported in [false, true] {
            let lane = lone(group_commit.turn(|| 0).await);
            let mut gone = Box::pin(group_commit.turn(|| 1));
            assert!(gone.as_mut().now_or_never().is_none());
            // Before the lane is handed to it, and after.
            if reported {
                drop(lane);
                drop(gone);
            } else {
                drop(gone);
                drop(lane);
            }
            drop(lone(group_commit.turn(|| 2).await));
        }
    }
}
