//! Starts and resumes the threads of one graph.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tracing::{Instrument as _, Span};

use super::claimed::{Broken, ClaimedThread, end_status};
use super::drive::Drive;
use super::lease;
use super::outcome::{Durability, Error, Judge, Result, RunOptions, RunOutcome, RunResult};
use super::task::{Listeners, RunContext, Spans};
use super::writer::{Snapshots, Writer};
use crate::bus::{Publisher, RunToPublish};
use crate::checkpoint::{
    Error as StoreError, Fence, NewThread, RunEnd, RunStatus, Store, ThreadInfo, ThreadStatus,
    restore,
};
use crate::failpoint::{Point, wrap};
use crate::graph::{Engine, EngineError, Graph, Position, State};
use crate::ids::ThreadId;
use crate::journal::{Claimed, by_step, verify_keys};
use crate::observer::{ActiveRun, report};

/// Runs the threads of one graph on one store.
#[derive(Clone)]
pub struct Runner<S: State> {
    graph: Arc<Graph<S>>,
    store: Arc<dyn Store>,
    pub(super) process: Arc<str>,
    /// The tenant of the threads that this runner creates.
    pub tenant: Arc<str>,
    /// How long leases last without renewal, by default 15 seconds; they are renewed each third of it.
    ///
    /// This is the wait for a process that died on another machine; a process that is stopped for longer loses its
    /// threads.
    pub lease: Duration,
    /// Whether each new run has a trace to export, so that it is delivered even if this process dies.
    pub exports_traces: bool,
    /// The live spans of runs and tasks, so that log lines have their context.
    pub spans: Option<Arc<dyn Spans>>,
    /// Decides the finish reason of each run at the top, and whether a run that reached the end of the graph failed.
    pub judge: Option<Judge<S>>,
    /// Largest size of a state after an input or an edit, in bytes of JSON; no bound by default.
    pub most_bytes: Option<usize>,
}

impl<S: State> std::fmt::Debug for Runner<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").field("graph", &self.graph).finish_non_exhaustive()
    }
}

impl<S: State> Runner<S> {
    /// Makes a runner.
    pub fn new(graph: Arc<Graph<S>>, store: Arc<dyn Store>) -> Self {
        Self {
            graph,
            store,
            process: lease::owner_name().into(),
            tenant: "default".into(),
            lease: lease::LEASE,
            exports_traces: false,
            spans: None,
            judge: None,
            most_bytes: None,
        }
    }

    /// Returns the graph.
    pub fn graph(&self) -> &Arc<Graph<S>> {
        &self.graph
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Makes a thread that has not run yet.
    ///
    /// # Errors
    /// As [`Threads::create`](crate::checkpoint::Threads::create).
    pub async fn create(&self, thread: ThreadId, title: Option<String>) -> Result<ThreadInfo> {
        self.create_for(&self.tenant, thread, title).await
    }

    /// Makes a thread of a named tenant that has not run yet.
    ///
    /// # Errors
    /// As [`Threads::create`](crate::checkpoint::Threads::create).
    pub async fn create_for(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
    ) -> Result<ThreadInfo> {
        let new = NewThread {
            id: thread,
            graph: self.graph.name().to_owned(),
            title,
            root: None,
            namespace: String::new(),
            tenant: tenant.to_owned(),
        };
        Ok(wrap(Point::ThreadCreate, self.store().create(new)).await?)
    }

    /// Runs an input on a fresh thread with the default options.
    ///
    /// # Errors
    /// As [`Runner::start`].
    pub async fn run_new(&self, input: S::Update) -> Result<RunOutcome<S>> {
        let options = RunOptions::default();
        self.start_new(&self.tenant, ThreadId::new(), None, input, options).await
    }

    /// Gives a thread its first input as [`Runner::start`] does, and makes it for a tenant, with a title.
    ///
    /// # Errors
    /// As [`Runner::start`].
    pub async fn start_new(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
        input: S::Update,
        options: RunOptions<S>,
    ) -> Result<RunOutcome<S>> {
        let read = self.make_or_read(tenant, thread, title).await?;
        let claimed = self.claim_finished(thread, Some(read), &options.cancel).await?;
        self.drive(claimed, Some(input), options).await
    }

    /// Gives a thread a new input and runs it to its end or its next interrupt; creates the thread if it does not
    /// exist.
    ///
    /// The input is merged like a node's update, is itself a step, and starts the graph's entry nodes. It
    /// is durable before the first of them starts, in every mode.
    ///
    /// # Errors
    /// [`Error::Unfinished`] when the thread's last run has not ended, and whatever the store reports.
    pub async fn start(
        &self,
        thread: ThreadId,
        input: S::Update,
        options: RunOptions<S>,
    ) -> Result<RunOutcome<S>> {
        let claimed = self.claim_finished(thread, None, &options.cancel).await?;
        self.drive(claimed, Some(input), options).await
    }

    /// Resumes a thread after a crash, a failure, a stop, a fork, or answers to its interrupts.
    ///
    /// Finished tasks of the incomplete step do not run again. Without answers the open questions are asked again,
    /// under the same ids.
    ///
    /// # Errors
    /// [`Error::Finished`] if the thread has no work left, [`Error::NeverAsked`] if the last run ended before its input
    /// was stored, and any error of the store.
    pub async fn resume(&self, thread: ThreadId, options: RunOptions<S>) -> Result<RunOutcome<S>> {
        let read = self.read(thread).await?;
        // One at rest has its end written; of any other only the end may be missing.
        if read.frontier.tasks.is_empty() && read.info.status == ThreadStatus::Idle {
            let last = self.store.runs(thread).await?.pop();
            let was_lost = last.is_some_and(|run| run.status == RunStatus::Cancelled);
            return Err(if was_lost {
                Error::NeverAsked { thread }
            } else {
                Error::Finished { thread }
            });
        }
        let claimed = self.claim(read, &options.cancel).await?;
        self.refuse_unasked(&claimed).await?;
        self.drive(claimed, None, options).await
    }

    /// Drives a claimed thread, and counts how that ends; the run of a subgraph is a part of the parent's run.
    pub(super) async fn drive(
        &self,
        claimed: ClaimedThread<S>,
        input: Option<S::Update>,
        options: RunOptions<S>,
    ) -> Result<RunOutcome<S>> {
        let is_top = claimed.restored.info.namespace.is_empty();
        let counted = is_top.then(|| ActiveRun::start(self.graph.name()));
        let span = match &self.spans {
            Some(spans) if is_top => spans.run(claimed.restored.info.id, claimed.run).await,
            _ => Span::none(),
        };
        // The renewal of the lease began before the run had a number.
        let _ = claimed.span.set(span.clone());
        let driven = self.drive_to_end(claimed, input, options).instrument(span).await;
        let Some(counted) = counted else { return driven };
        if let Err(Error::Store(StoreError::Fenced { .. })) = &driven {
            report(|observer| observer.lease_lost());
        }
        counted.ended(match &driven {
            Ok(outcome) => outcome.result.statuses().0.as_str(),
            Err(_) => RunStatus::Failed.as_str(),
        });
        driven
    }

    async fn drive_to_end(
        &self,
        claimed: ClaimedThread<S>,
        input: Option<S::Update>,
        options: RunOptions<S>,
    ) -> Result<RunOutcome<S>> {
        let withdrawn = options.withdrawn.clone();
        let stop = claimed.stop.clone();
        let stopping = async {
            withdrawn.cancelled().await;
            stop.cancel();
            std::future::pending::<Infallible>().await
        };
        let mut hands_over = options.hands_over;
        let mut publisher = None;
        let driven = tokio::select! {
            driven = self.drive_claimed(&claimed, input, options, &mut publisher) => driven,
            never = stopping => match never {},
        };
        hands_over &= !withdrawn.is_cancelled();
        let outcome = match driven {
            Ok(mut outcome) => {
                if hands_over && outcome.result == RunResult::Cancelled {
                    outcome.result = RunResult::Queued;
                }
                outcome
            }
            Err(error) => match self.broken(&claimed, &error, hands_over).await {
                Broken::AtEnd(outcome) => outcome,
                Broken::Left(run, thread) => {
                    if let Some(publisher) = publisher {
                        publisher.end(None, end_status(run), Some(error.to_string())).await;
                    }
                    return Err(self.give_back(&claimed, error, (run, thread)).await);
                }
            },
        };
        let (mut run_status, thread_status, error) = outcome.result.statuses();
        let verdict = self.judge.map(|judge| judge(&outcome.result, &outcome.state));
        let verdict = verdict.unwrap_or_default();
        if run_status == RunStatus::Done && verdict.failure.is_some() {
            run_status = RunStatus::Failed;
        }
        let error = error.or(verdict.failure);
        if let Some(publisher) = publisher {
            publisher.end(Some(outcome.head), end_status(run_status), error.clone()).await;
        }
        let end = RunEnd {
            run: run_status,
            thread: thread_status,
            error: error.as_deref(),
            finish_reason: verdict.finish_reason,
        };
        self.release(&claimed, end).await?;
        Ok(outcome)
    }

    /// Returns what a run on a claimed thread writes with, and where it begins.
    pub(super) fn parts_of_run(
        &self,
        claimed: &ClaimedThread<S>,
        durability: Durability,
    ) -> (Writer, Snapshots, Position<S>) {
        let restored = &claimed.restored;
        let size = restored.snapshot_size;
        let since = restored.since_snapshot;
        let snapshots = Snapshots::new(self.store.as_ref(), restored.info.id, size, since);
        let position = Position {
            state: Arc::clone(&restored.state),
            head: restored.seq,
            frontier: restored.frontier.clone(),
            done: restored.pending.clone(),
        };
        (self.writer(claimed, durability), snapshots, position)
    }

    async fn drive_claimed(
        &self,
        claimed: &ClaimedThread<S>,
        input: Option<S::Update>,
        options: RunOptions<S>,
        publisher: &mut Option<Publisher>,
    ) -> Result<RunOutcome<S>> {
        let restored = &claimed.restored;
        let thread = restored.info.id;
        let fence = Fence::from(&restored.info);
        let (mut writer, mut snapshots, mut position) =
            self.parts_of_run(claimed, options.durability);
        let has_pending = !position.done.is_empty();
        let continues = input.is_none();
        let mut recorded = BTreeMap::new();
        match input {
            Some(input) => {
                self.take_input(restored, &mut position, input, &mut writer, &mut snapshots)
                    .await?;
            }
            None => {
                let effects = self.store.effects_from(thread, position.head + 1).await?;
                verify_keys(&restored.info, &effects)?;
                recorded = by_step(effects);
            }
        }
        let first_step = position.head + 1;
        *publisher = options.publish.map(|bus| {
            let run = claimed.run;
            let head = position.head;
            let next = position.frontier.names();
            let events = claimed.events;
            Publisher::begin::<S>(bus, RunToPublish { fence, run, events, head, next, continues })
        });
        if let Some(most) = options.max_crashes {
            self.refuse_crash_loop(claimed, most).await?;
        }
        let sender = publisher.as_ref().map(Publisher::sender);
        let listeners = Listeners::new(options.events, options.wants, sender);
        // A run that broke off may not have come to its pause yet; one that had begun the step was past it.
        let is_past = claimed.was != ThreadStatus::Busy
            || has_pending
            || recorded.contains_key(&(position.head + 1));
        let passes_first = continues && is_past && !options.pauses.at_start;
        let mut engine =
            Engine::new(Arc::clone(&self.graph), position, options.limits, listeners.wants())
                .pausing(options.pauses, passes_first);
        let tenant: Arc<str> = restored.info.tenant.clone().into();
        let context = RunContext {
            store: Arc::clone(&self.store),
            thread,
            run: claimed.run,
            claimed: Claimed {
                fence,
                clock: claimed.clock,
                made_at: restored.info.created_at.timestamp_micros(),
            },
            namespace: restored.info.namespace.clone().into(),
            tenant: Arc::clone(&tenant),
            request: options.request,
            stop: claimed.stop.clone(),
            listeners,
            spans: self.spans.clone(),
        };
        let mut drive = Drive {
            context,
            deadline: options.deadline,
            lease: self.lease,
            writer,
            snapshots,
            recorded,
            again: claimed.was == ThreadStatus::Failed,
            first_step,
            has_pending,
            texts: Vec::new(),
        };
        let result = drive.drive(&mut engine).await;
        let Drive { mut writer, snapshots, .. } = drive;
        let flushed = writer.flush().await;
        let steps = engine.steps_done();
        let mut state = Arc::clone(engine.state());
        let head = first_step - 1 + steps;
        // A route's unknown target is found when its step is merged already, and not committed.
        let is_ahead = matches!(&result, Ok(RunResult::Failed(EngineError::UnknownTarget { .. })));
        let is_whole = result.is_ok() && flushed.is_ok() && !is_ahead;
        snapshots.finish(is_whole.then_some((&self.store, head, &state))).await;
        let result = result?;
        flushed?;
        if is_ahead {
            state = restore::<S>(self.store.as_ref(), thread, Some(head)).await?.state;
        }
        Ok(RunOutcome { thread, tenant, run: claimed.run, result, state, head, steps })
    }
}
