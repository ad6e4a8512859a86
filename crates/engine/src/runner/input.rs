//! Commits an input as a separate step that leads to the entry nodes, if the state has space for it; submits runs to
//! the workers, and continues submitted runs.

use std::collections::BTreeMap;
use std::io;

use tokio_util::sync::CancellationToken;

use super::claimed::ClaimedThread;
use super::outcome::{Durability, Error, Result, RunOptions, RunOutcome};
use super::run::Runner;
use super::writer::{Snapshots, Step, Writer};
use crate::checkpoint::{
    Counting, Error as StoreError, Restored, RunEnd, RunStatus, StepKind, ThreadInfo, ThreadStatus,
    names_in,
};
use crate::graph::{EngineError, Finished, Frontier, Graph, Position, State, Written, merge};
use crate::ids::{RunId, ThreadId};

/// The node name under which inputs are stored.
pub const INPUT: &str = "__input__";

impl<S: State> Runner<S> {
    /// Commits the input as a step that leads to the entry nodes.
    pub(super) async fn take_input(
        &self,
        restored: &Restored<S>,
        position: &mut Position<S>,
        input: S::Update,
        writer: &mut Writer,
        snapshots: &mut Snapshots,
    ) -> Result<()> {
        let (written, texts) = Written::<S>::new(INPUT, input, None);
        // What a subgraph is given comes from the steps above it.
        if restored.info.root.is_none() {
            self.check_texts(restored.info.id, &written, &texts).await?;
        }
        let finished = vec![Finished { written, entry: None }];
        let merged = merge(self.graph(), &mut position.state, finished, BTreeMap::new())?;
        self.check_room(restored, merged.delta.len(), &position.state)?;
        let (frontier, encoded) = entry_frontier(self.graph())?;
        let seq = position.head + 1;
        let size = merged.delta.len();
        let step = Step {
            seq,
            kind: StepKind::Input,
            delta: merged.delta,
            frontier: encoded,
            clears_pending: false,
            texts,
        };
        writer.write_now(step).await?;
        if snapshots.is_due(size).await {
            snapshots.write(self.store(), seq, &position.state);
        }
        position.head = seq;
        position.frontier = frontier;
        position.done.clear();
        Ok(())
    }

    /// Makes a thread, or reads the one that another process has made meanwhile for the same tenant.
    ///
    /// # Errors
    /// [`StoreError::ThreadExists`] for a thread of another tenant.
    pub async fn make_or_read(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
    ) -> Result<Restored<S>> {
        match self.create_for(tenant, thread, title).await {
            Err(Error::Store(exists @ StoreError::ThreadExists(_))) => {
                let read = self.read(thread).await?;
                if read.info.tenant == tenant { Ok(read) } else { Err(exists.into()) }
            }
            made => Ok(Restored::of_new(made?)),
        }
    }

    /// Claims a thread without remaining work, as it was read or as it is; makes a missing one.
    pub(super) async fn claim_finished(
        &self,
        thread: ThreadId,
        mut known: Option<Restored<S>>,
        cancel: &CancellationToken,
    ) -> Result<ClaimedThread<S>> {
        loop {
            let read = match known.take() {
                Some(read) => Ok(read),
                None => self.read(thread).await,
            };
            let read = match read {
                Err(Error::Store(StoreError::UnknownThread(_))) => {
                    self.make_or_read(&self.tenant, thread, None).await?
                }
                read => read?,
            };
            let has_holder = read.info.owner.is_some();
            // If the thread has a holder, only a claim shows whether its run is active or broke off.
            if !read.frontier.tasks.is_empty() && !has_holder {
                return Err(Error::Unfinished { thread, status: read.info.status.as_str() });
            }
            let claimed = if has_holder {
                match self.claim_as_read(read, cancel).await {
                    Err(Error::Store(error @ StoreError::Busy { .. })) => {
                        if self.own(thread).await?.owner.is_some() {
                            return Err(error.into());
                        }
                        // The holder has ended its run since: how it left the thread is read.
                        continue;
                    }
                    claimed => claimed?,
                }
            } else {
                self.claim(read, cancel).await?
            };
            return self.refuse_unfinished(claimed).await;
        }
    }

    /// Gives a thread a new input and leaves the run to the workers: [`Runner::wake`] continues with it.
    ///
    /// The input is a durable step when this returns, and after an error it is not there. A crash, or a database that is
    /// away, before the call to the workers leaves the thread busy with a dead holder, which a worker's next look sets right.
    ///
    /// # Errors
    /// As [`Runner::start`].
    pub async fn submit(&self, thread: ThreadId, input: S::Update) -> Result<RunId> {
        let claimed = self.claim_finished(thread, None, &CancellationToken::new()).await?;
        let (mut writer, mut snapshots, mut position) =
            self.parts_of_run(&claimed, Durability::Sync);
        let restored = &claimed.restored;
        let taken =
            self.take_input(restored, &mut position, input, &mut writer, &mut snapshots).await;
        snapshots.finish::<S>(None).await;
        if let Err(error) = taken {
            let newest =
                self.store().history(thread, None, 1).await.ok().and_then(|mut it| it.pop());
            if newest.is_none_or(|newest| newest.run != claimed.run) {
                return Err(self.break_off(&claimed, error).await);
            }
        }
        // The input is stored, so the submission succeeds even if the next write fails.
        let end = RunEnd::new(RunStatus::Queued, ThreadStatus::Queued);
        if let Err(error) = self.release(&claimed, end).await {
            tracing::warn!(%thread, %error, "the workers could not be called; one of them finds the thread");
        }
        Ok(claimed.run)
    }

    /// Resumes a thread that was handed to the workers, or whose run lost its process.
    ///
    /// `None` if this caller has no work: the thread is idle, waits for a person, has a holder that may be alive, or
    /// was just claimed by another process. A wake-up call is only a hint; the stored status decides.
    ///
    /// # Errors
    /// As [`Runner::resume`].
    pub async fn wake(
        &self,
        thread: ThreadId,
        options: RunOptions<S>,
    ) -> Result<Option<RunOutcome<S>>> {
        if !may_continue(&self.store().info(thread).await?) {
            return Ok(None);
        }
        let read = self.read(thread).await?;
        if !may_continue(&read.info) {
            return Ok(None);
        }
        match self.claim_as_read(read, &options.cancel).await {
            Ok(claimed) => match self.refuse_unasked(&claimed).await {
                Ok(()) => self.drive(claimed, None, options).await.map(Some),
                Err(error @ Error::NeverAsked { .. }) => {
                    tracing::warn!("{error}");
                    Ok(None)
                }
                Err(error) => Err(error),
            },
            Err(Error::Store(StoreError::Busy { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Refuses what made `state` of the state that was restored, when it has more bytes than the bound.
    ///
    /// A state has at most the bytes of the restored state plus the added bytes, so most states are never measured.
    /// Referenced texts count as part of it.
    pub(super) fn check_room(&self, restored: &Restored<S>, added: usize, state: &S) -> Result<()> {
        let Some(most) = self.most_bytes else { return Ok(()) };
        let named = texts(state);
        if restored.snapshot_size + restored.since_snapshot + added + named <= most {
            return Ok(());
        }
        let bytes = size(state) + named;
        // What makes a state smaller is taken, however large it is still.
        if bytes <= most || bytes < size(&*restored.state) + texts(&*restored.state) {
            Ok(())
        } else {
            Err(Error::StateFull { thread: restored.info.id, bytes, most })
        }
    }
}

pub(super) fn entry_frontier<S: State>(graph: &Graph<S>) -> Result<(Frontier, Vec<u8>)> {
    encoded(Frontier::of(graph.entry().iter().map(String::as_str)))
}

pub(super) fn encoded(frontier: Frontier) -> Result<(Frontier, Vec<u8>)> {
    let encoded =
        serde_json::to_vec(&frontier).map_err(|error| EngineError::encode(INPUT, &error))?;
    Ok((frontier, encoded))
}

/// Returns whether a thread waits for a process that continues it; only the database knows if a lease has expired.
fn may_continue(info: &ThreadInfo) -> bool {
    matches!(info.status, ThreadStatus::Queued | ThreadStatus::Busy)
}

/// Returns the size of a state as JSON in bytes; a state without a JSON form is rejected when it is stored.
fn size<S: State>(state: &S) -> usize {
    let mut counted = Counting::new(io::sink());
    let _ = serde_json::to_writer(&mut counted, state);
    counted.count
}

fn texts<S: State>(state: &S) -> usize {
    names_in(state).into_iter().map(|name| name.bytes as usize).sum()
}
