//! Reads, edits and forks threads, and answers their questions.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::input::{INPUT, encoded, entry_frontier};
use super::outcome::{Error, Result};
use super::run::Runner;
use super::writer::{Step, put_snapshot};
use crate::checkpoint::{
    EffectKind, Encoded, Error as StoreError, NewThread, OpenInterrupt, Restored, StepKind, Store,
    ThreadFilter, ThreadInfo, awaited_interrupts, fork_to, restore,
};
use crate::failpoint::{Point, wrap};
use crate::graph::{BlobText, END, EngineError, Finished, Frontier, State, Target, Written, merge};
use crate::ids::{InterruptId, ThreadId};
use crate::journal::check_answer;

/// A thread's state at one step.
#[derive(Clone, Debug)]
pub struct StateView<S: State> {
    /// The thread.
    pub info: ThreadInfo,
    /// The step that `state` belongs to.
    pub seq: u64,
    /// The state after step `seq`.
    pub state: Arc<S>,
    /// The nodes that run next.
    pub next: Vec<String>,
}

impl<S: State> StateView<S> {
    /// Reads a thread's state at a step, or at its head, without its graph.
    ///
    /// # Errors
    /// As [`restore`].
    pub async fn read(
        store: &dyn Store,
        thread: ThreadId,
        at: Option<u64>,
    ) -> Result<Self, StoreError> {
        let Restored { info, seq, state, frontier, .. } = restore::<S>(store, thread, at).await?;
        Ok(Self { info, seq, state, next: frontier.names() })
    }
}

/// The continuation after an edit of a thread's state.
#[derive(Clone, Debug, PartialEq)]
pub enum AfterEdit {
    /// The routes of the author node.
    Routes,
    /// These.
    Goto(Vec<Target>),
    /// The tasks that were next before the edit.
    Unchanged,
}

impl<S: State> Runner<S> {
    /// Reads a thread's state at a step, or at its head; step 0 is the empty state.
    ///
    /// # Errors
    /// As [`restore`].
    pub async fn state(&self, thread: ThreadId, at: Option<u64>) -> Result<StateView<S>> {
        Ok(StateView::read(self.store().as_ref(), thread, at).await?)
    }

    /// Edits a thread's state as if `as_node` had written it; the edit is a step, and that node's routes are next.
    ///
    /// `__input__` means a new input, which leads to the entry nodes, and [`END`] an edit without a next node. The
    /// active step is abandoned: the writes of its finished tasks are dropped, and its open questions, with those in
    /// its subgraphs, can no longer be answered.
    ///
    /// # Errors
    /// [`Error::UnknownNode`], [`Error::Update`] when the update cannot be stored or leads nowhere, and
    /// whatever the store reports.
    pub async fn update_state(
        &self,
        thread: ThreadId,
        update: S::Update,
        as_node: &str,
    ) -> Result<StateView<S>> {
        self.update_state_and_go(thread, None, update, as_node, AfterEdit::Routes).await
    }

    /// Edits a thread's state as [`Runner::update_state`] does, with a chosen continuation.
    ///
    /// An update that is based on a state names the step that was then the head in `seen`.
    ///
    /// # Errors
    /// [`StoreError::Moved`] if the thread has left `seen`, and as [`Runner::update_state`].
    pub async fn update_state_and_go(
        &self,
        thread: ThreadId,
        seen: Option<u64>,
        update: S::Update,
        as_node: &str,
        after: AfterEdit,
    ) -> Result<StateView<S>> {
        let read = self.read(thread).await?;
        let has_moved = |head| seen.is_some_and(|seen| seen != head);
        if has_moved(read.seq) {
            return Err(StoreError::Moved { thread }.into());
        }
        let stays = after == AfterEdit::Unchanged;
        let tried = self.tried(&read, update, as_node, &after).await?;
        let claimed = self.claim(read, &CancellationToken::new()).await?;
        let merged = if has_moved(claimed.restored.seq) {
            Err(StoreError::Moved { thread }.into())
        } else {
            self.merged(&claimed.restored, tried, as_node, &after)
        };
        let (step, state, frontier) = match merged {
            Ok(merged) => merged,
            Err(error) => {
                self.release_unchanged(&claimed).await?;
                return Err(error);
            }
        };
        let seq = self.write_edit(&claimed, step).await?;
        let edited = "the state was edited; resume the thread to continue from it";
        self.end_edit(&claimed, seq, state, &frontier, (!stays).then_some(edited)).await
    }

    /// Checks an edit of a thread at a step as [`Runner::update_state_and_go`] does, without writing.
    ///
    /// # Errors
    /// As [`Runner::update_state_and_go`].
    pub async fn check_update(
        &self,
        thread: ThreadId,
        at: u64,
        update: S::Update,
        as_node: &str,
        after: &AfterEdit,
    ) -> Result<()> {
        let read = restore::<S>(self.store().as_ref(), thread, Some(at)).await?;
        self.tried(&read, update, as_node, after).await?;
        Ok(())
    }

    /// Makes a thread that shares this one's history up to a step; resume it to run on from there.
    ///
    /// The step after `at` runs again in the fork, its calls included: they are another thread's.
    ///
    /// # Errors
    /// [`Error::WrongGraph`], and whatever the store reports.
    pub async fn fork(
        &self,
        source: ThreadId,
        at: u64,
        title: Option<String>,
    ) -> Result<ThreadInfo> {
        let info = self.own(source).await?;
        Ok(fork(self.store().as_ref(), info, at, ThreadId::new(), title).await?)
    }

    /// Returns a thread to an earlier step, from which a resume continues.
    ///
    /// The steps in between stay, and can be gone back to in the same way. At the head this writes nothing.
    ///
    /// # Errors
    /// [`StoreError::UnknownStep`] for a step that is not there, and whatever else the store reports.
    pub async fn go_back(&self, thread: ThreadId, to: u64) -> Result<StateView<S>> {
        let read = self.read(thread).await?;
        if to == read.info.head {
            let next = read.frontier.names();
            return Ok(StateView { info: read.info, seq: to, state: read.state, next });
        }
        let store = Arc::clone(self.store());
        check_step(store.as_ref(), &read.info, to).await?;
        let target = restore::<S>(store.as_ref(), thread, Some(to)).await?;
        let unstorable = |error| Error::Update(EngineError::encode("__fork__", &error));
        let delta = serde_json::to_vec(&[fork_to::<S>(to)]).map_err(unstorable)?;
        let frontier = serde_json::to_vec(&target.frontier).map_err(unstorable)?;
        let claimed = self.claim(read, &CancellationToken::new()).await?;
        let seq = claimed.restored.seq + 1;
        let kind = StepKind::Fork;
        let step = Step { seq, kind, delta, frontier, clears_pending: true, texts: Vec::new() };
        let seq = self.write_edit(&claimed, step).await?;
        // What is shortened later may be what it goes back to; without the snapshot it is read more slowly until then.
        if let Err(error) = put_snapshot(store.as_ref(), &target, seq).await {
            tracing::warn!(%thread, %error, "a snapshot could not be written");
        }
        let back = "the thread went back to an earlier step; resume it to continue from it";
        self.end_edit(&claimed, seq, target.state, &target.frontier, Some(back)).await
    }

    /// Returns the questions that wait for a person, of the thread and of its subgraphs, oldest first.
    ///
    /// Questions of abandoned steps are not included.
    ///
    /// # Errors
    /// Whatever the store reports.
    pub async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>> {
        Ok(awaited_interrupts(self.store().as_ref(), thread).await?)
    }

    /// Answers one open question of a thread; a resume delivers the answer to the node that asked.
    ///
    /// # Errors
    /// [`Error::Answer`] when the question cannot take such an answer, otherwise the store's
    /// `InterruptClosed` for a second answer or an abandoned question, and `UnknownInterrupt`.
    pub async fn answer(
        &self,
        thread: ThreadId,
        interrupt: InterruptId,
        answer: &Value,
    ) -> Result<()> {
        let open = self.open_interrupts(thread).await?;
        let Some(question) = open.into_iter().find(|question| question.id == interrupt) else {
            return Err(if self.was_asked(thread, interrupt).await? {
                StoreError::InterruptClosed(interrupt).into()
            } else {
                StoreError::UnknownInterrupt(interrupt).into()
            });
        };
        check_answer(&question.kind, answer)
            .map_err(|reason| Error::Answer { interrupt, reason })?;
        let answer = Encoded::json(answer, self.store().compress_above())?;
        Ok(wrap(Point::AnswerCommit, self.store().answer(interrupt, &answer)).await?)
    }

    /// Returns whether a thread, or a subgraph of it, ever asked this; only looked up to explain a refusal.
    ///
    /// # Errors
    /// Whatever the store reports.
    pub async fn was_asked(&self, thread: ThreadId, interrupt: InterruptId) -> Result<bool> {
        let filter = ThreadFilter { root: Some(thread), ..ThreadFilter::default() };
        let children = self.store().list(&filter).await?;
        for id in children.iter().map(|child| child.id).chain([thread]) {
            let effects = self.store().effects(id, None).await?;
            let is_it = |key: &[u8]| key == interrupt.0.as_bytes();
            if effects.iter().any(|row| row.kind == EffectKind::Interrupt && is_it(&row.key)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tries an edit on the state; an edit that cannot be merged claims no lease and changes nothing.
    async fn tried(
        &self,
        read: &Restored<S>,
        update: S::Update,
        as_node: &str,
        after: &AfterEdit,
    ) -> Result<(Finished<S>, Vec<BlobText>)> {
        let entry = match as_node {
            INPUT | END => None,
            node => match self.graph().resolve(node) {
                Some(entry) => Some(entry),
                None => {
                    let graph = self.graph().name().to_owned();
                    let node = node.to_owned();
                    return Err(Error::UnknownNode { graph, node });
                }
            },
        };
        let goto = match after {
            AfterEdit::Goto(targets) => Some(targets.clone()),
            AfterEdit::Routes | AfterEdit::Unchanged => None,
        };
        let (written, texts) = Written::<S>::new(as_node, update, goto);
        self.check_texts(read.info.id, &written, &texts).await?;
        let edit = Finished { written, entry: entry.filter(|_| *after != AfterEdit::Unchanged) };
        let mut tried = Arc::clone(&read.state);
        let merged =
            merge(self.graph(), &mut tried, vec![edit.clone()], read.frontier.joins.clone())?;
        self.check_room(read, merged.delta.len(), &tried)?;
        Ok((edit, texts))
    }

    /// Merges an edit that was tried into the state of the claimed thread, which may have moved since.
    fn merged(
        &self,
        now: &Restored<S>,
        (edit, texts): (Finished<S>, Vec<BlobText>),
        as_node: &str,
        after: &AfterEdit,
    ) -> Result<(Step, Arc<S>, Frontier)> {
        let mut state = Arc::clone(&now.state);
        let merged = merge(self.graph(), &mut state, vec![edit], now.frontier.joins.clone())?;
        let (next, frontier) = match (after, as_node) {
            (AfterEdit::Unchanged, _) => encoded(now.frontier.clone())?,
            (AfterEdit::Routes, INPUT) => entry_frontier(self.graph())?,
            _ => (merged.frontier, merged.encoded_frontier),
        };
        let kind = StepKind::Edit;
        let seq = now.seq + 1;
        let delta = merged.delta;
        Ok((Step { seq, kind, delta, frontier, clears_pending: true, texts }, state, next))
    }

    /// Refuses an update from outside that names a text which is not kept for the thread.
    pub(super) async fn check_texts(
        &self,
        thread: ThreadId,
        written: &Written<S>,
        new: &[BlobText],
    ) -> Result<()> {
        for name in &written.blobs {
            if new.iter().any(|text| text.name == *name) {
                continue;
            }
            if self.store().blob(thread, &name.hash).await?.is_none() {
                let reason = "it names a text that the thread does not keep".to_owned();
                let node = written.node.clone();
                return Err(Error::Update(EngineError::Encode { node, reason }));
            }
        }
        Ok(())
    }
}

/// Makes a thread `id` that shares a thread's history up to a step.
///
/// # Errors
/// [`StoreError::UnknownStep`] for a step that is not there, and whatever else the store reports.
pub async fn fork(
    store: &dyn Store,
    source: ThreadInfo,
    at: u64,
    id: ThreadId,
    title: Option<String>,
) -> Result<ThreadInfo, StoreError> {
    check_step(store, &source, at).await?;
    let ThreadInfo { id: thread, graph, tenant, .. } = source;
    let namespace = String::new();
    let new = NewThread { id, graph, title, root: None, namespace, tenant };
    store.fork(thread, at, new).await
}

/// Refuses a step beyond the head, or a dropped step: which nodes ran after it is unknown.
async fn check_step(store: &dyn Store, info: &ThreadInfo, at: u64) -> Result<(), StoreError> {
    let row = store.history(info.id, Some(at.saturating_add(1)), 1).await?.pop();
    if at == 0 || row.is_some_and(|row| row.seq == at) {
        return Ok(());
    }
    Err(StoreError::UnknownStep { thread: info.id, seq: at, head: info.head })
}
