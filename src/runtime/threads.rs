//! Threads as people look at them: without servers, without a model.

use crate::checkpoint::{OpenInterrupt, RunRow, Store, ThreadInfo};
use crate::ids::ThreadId;
use crate::runner::StateView;
use crate::swarm::GraphState;

/// A thread with its runs and open questions.
#[derive(Clone, Debug)]
pub struct ThreadView {
    pub info: ThreadInfo,
    pub runs: Vec<RunRow>,
    pub open: Vec<OpenInterrupt>,
}

impl ThreadView {
    /// Reads a thread's row, runs and open questions.
    ///
    /// # Errors
    /// As [`Store::info`].
    pub async fn read(
        store: &dyn Store,
        thread: ThreadId,
    ) -> Result<Self, crate::checkpoint::Error> {
        let info = store.info(thread).await?;
        let runs = store.runs(thread).await?;
        let open = crate::checkpoint::awaited_interrupts(store, thread).await?;
        Ok(Self { info, runs, open })
    }
}

/// Reads the state of a star's thread at a step without opening servers or a model.
///
/// # Errors
/// As [`crate::checkpoint::stand_up`].
pub async fn read_state(
    store: &dyn Store,
    thread: ThreadId,
    at: Option<u64>,
) -> Result<StateView<GraphState>, crate::checkpoint::Error> {
    let standing = crate::checkpoint::stand_up::<GraphState>(store, thread, at).await?;
    let next = standing.frontier.tasks.into_iter().map(|task| task.node).collect();
    Ok(StateView { info: standing.info, seq: standing.seq, state: standing.state, next })
}
