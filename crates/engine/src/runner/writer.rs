//! Commits steps in order, as early or late as the durability mode allows.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::outcome::Durability;
use crate::checkpoint::{
    BlobRow, Commit, Encoded, Error, Result, StepKind, StepRow, Steps, Store, ThreadInfo,
    ThreadStatus, blob_row, chain_hash,
};
use crate::clock;
use crate::failpoint::{Point, wrap};
use crate::graph::{BlobText, step_at_the_top};
use crate::ids::{RunId, ThreadId};
use crate::observer::{Timer, report};

/// Everything the writer must know of a claimed thread.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub thread: ThreadId,
    /// The thread at the top, which owns the texts.
    pub top: ThreadId,
    pub namespace: String,
    pub fence: u64,
    pub run: RunId,
    pub schema_version: u32,
}

impl Claim {
    pub(super) fn of(info: &ThreadInfo, run: RunId, schema_version: u32) -> Self {
        Self {
            thread: info.id,
            top: info.top(),
            namespace: info.namespace.clone(),
            fence: info.fence,
            run,
            schema_version,
        }
    }
}

/// A step as the engine hands it over.
#[derive(Debug)]
pub(super) struct Step {
    pub seq: u64,
    pub kind: StepKind,
    pub delta: Vec<u8>,
    pub frontier: Vec<u8>,
    pub clears_pending: bool,
    /// The texts that it names and that are not kept yet.
    pub texts: Vec<BlobText>,
}

pub(super) struct Writer {
    store: Arc<dyn Store>,
    claim: Claim,
    durability: Durability,
    hash: [u8; 32],
    under_way: Option<JoinHandle<Result<()>>>,
    deferred: Vec<Commit>,
}

impl Writer {
    pub(super) fn new(
        store: Arc<dyn Store>,
        claim: Claim,
        durability: Durability,
        hash: [u8; 32],
    ) -> Self {
        Self { store, claim, durability, hash, under_way: None, deferred: Vec::new() }
    }

    /// Writes an input immediately in every mode, so that a crash never loses it.
    pub(super) async fn write_now(&mut self, step: Step) -> Result<()> {
        let commit = self.link(step)?;
        self.flush().await?;
        commit_at(Point::InputCommit, self.store.as_ref(), &commit).await
    }

    /// Writes a step now, during the next one, or at the end of the run.
    ///
    /// One with texts is written now in every mode, with all before it: the step that follows may read them.
    pub(super) async fn write(&mut self, step: Step) -> Result<()> {
        let commit = self.link(step)?;
        match self.durability {
            Durability::Async | Durability::Exit if !commit.blobs.is_empty() => {
                self.flush().await?;
                commit_at(Point::StepCommit, self.store.as_ref(), &commit).await
            }
            Durability::Sync => commit_at(Point::StepCommit, self.store.as_ref(), &commit).await,
            Durability::Exit => {
                self.deferred.push(commit);
                Ok(())
            }
            Durability::Async => {
                self.flush().await?;
                let store = Arc::clone(&self.store);
                let committing =
                    async move { commit_at(Point::StepCommit, store.as_ref(), &commit).await };
                self.under_way = Some(tokio::spawn(committing.in_current_span()));
                Ok(())
            }
        }
    }

    /// Makes everything durable that can be without giving the mode up; says whether all of it is.
    pub(super) async fn settle(&mut self) -> Result<bool> {
        if self.durability == Durability::Async {
            self.flush().await?;
        }
        Ok(self.deferred.is_empty())
    }

    /// Links a step to the chain.
    fn link(&mut self, step: Step) -> Result<Commit> {
        let Step { seq, kind, delta, frontier, clears_pending, texts } = step;
        let blobs = self.blobs(seq, &texts)?;
        let hash = chain_hash(&self.hash, seq, &delta, &frontier);
        self.hash = hash;
        Ok(Commit {
            thread: self.claim.thread,
            fence: self.claim.fence,
            step: StepRow {
                seq,
                kind,
                run: self.claim.run,
                schema_version: self.claim.schema_version,
                delta: Encoded::json_text(delta, self.store.compress_above())?,
                frontier,
                hash,
                at: clock::now(),
            },
            status: ThreadStatus::Busy,
            clears_pending,
            blobs,
        })
    }

    /// Makes rows of the texts that a step of the thread names.
    pub(super) fn blobs(&self, step: u64, texts: &[BlobText]) -> Result<Vec<BlobRow>> {
        let step = step_at_the_top(&self.claim.namespace, step);
        let above = self.store.compress_above();
        texts.iter().map(|text| blob_row(self.claim.top, step, text, above)).collect()
    }

    /// Waits until everything handed over is durable.
    pub(super) async fn flush(&mut self) -> Result<()> {
        for commit in self.deferred.drain(..) {
            commit_at(Point::StepCommit, self.store.as_ref(), &commit).await?;
        }
        match self.under_way.take() {
            None => Ok(()),
            Some(task) => task.await.unwrap_or_else(|error| Err(Error::damaged(error))),
        }
    }
}

/// Commits a step, at a failpoint, and measures the duration.
async fn commit_at(point: Point, store: &dyn Steps, commit: &Commit) -> Result<()> {
    let timer = Timer::start();
    let committed = wrap(point, store.commit(commit)).await;
    if let Some(took) = timer.elapsed() {
        report(|observer| observer.step_committed(took, committed.is_ok()));
    }
    committed
}
