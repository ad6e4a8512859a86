//! A thread with its runs and its questions.

use super::Threads;
use super::steps::next_nodes;
use crate::{Error, InterruptView};
use perihelion_engine::checkpoint::{self, RunRow, Store, ThreadInfo, ThreadStatus};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner;
use perihelion_star::question::Question;

#[derive(Clone, Debug)]
pub struct ThreadView {
    pub info: ThreadInfo,
    pub runs: Vec<RunRow>,
    pub open: Vec<InterruptView>,
    /// The task of the active step that asks each question; 0 for a question of a subgraph.
    pub asking: Vec<u32>,
}

impl Threads {
    pub async fn view(&self, thread: ThreadId) -> Result<ThreadView, Error> {
        Ok(ThreadView::read(self.0.as_ref(), thread).await?)
    }
}

impl ThreadView {
    pub async fn read(store: &dyn Store, thread: ThreadId) -> Result<Self, checkpoint::Error> {
        let info = store.info(thread).await?;
        let runs = store.runs(thread).await?;
        let mut open = Vec::new();
        let mut asking = Vec::new();
        let mut next: Option<Vec<String>> = None;
        for one in checkpoint::awaited_interrupts(store, thread).await? {
            if next.is_none() {
                next = Some(next_nodes(store, thread, info.head).await?);
            }
            // A subgraph asks in a thread of its own; its agent stands in the question, if anywhere.
            let is_own = one.thread == thread;
            asking.push(if is_own { one.task } else { 0 });
            let node = next.as_ref().filter(|_| is_own);
            let node = node.and_then(|nodes| nodes.get(one.task as usize)).cloned();
            let payload = one.payload.decode()?;
            let question = Question::read(&one.kind, &payload);
            let agent = node.or_else(|| question.agent().map(str::to_owned)).unwrap_or_default();
            open.push(InterruptView { id: one.id.to_string(), kind: one.kind, agent, payload });
        }
        Ok(Self { info, runs, open, asking })
    }
}

/// Returns whether a thread's run is under way in name only: its process is known to be gone.
pub fn is_abandoned(info: &ThreadInfo) -> bool {
    info.status == ThreadStatus::Busy && info.owner.as_deref().is_none_or(runner::holder_is_dead)
}
