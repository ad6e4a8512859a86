//! Starts, resumes, edits and reads threads of one graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::drive::{Drive, recorded};
use super::lease;
use super::outcome::{Durability, Error, RunOptions, RunOutcome, RunResult};
use super::snapshots::Snapshots;
use super::writer::{Claim, Step, Writer};
use crate::checkpoint::{
    Error as StoreError, NewThread, RunStatus, Standing, StepKind, Store, ThreadInfo, ThreadStatus,
    stand_up,
};
use crate::graph::{Engine, EngineError, Frontier, Graph, Position, State, Written, merge};
use crate::ids::{RunId, ThreadId};

/// The node name under which inputs are stored.
const INPUT: &str = "__input__";

/// A thread's state at one step.
#[derive(Clone, Debug)]
pub struct StateView<S: State> {
    pub info: ThreadInfo,
    pub seq: u64,
    pub state: Arc<S>,
    /// The nodes that run next.
    pub next: Vec<String>,
}

/// Runs the threads of one graph on one store.
#[derive(Clone)]
pub struct Runner<S: State> {
    graph: Arc<Graph<S>>,
    store: Arc<dyn Store>,
    owner: Arc<str>,
    tenant: Arc<str>,
}

impl<S: State> std::fmt::Debug for Runner<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").field("graph", &self.graph).finish_non_exhaustive()
    }
}

/// A claimed thread, ready to be driven.
struct Held<S: State> {
    standing: Standing<S>,
    run: RunId,
    _lease: tokio_util::task::AbortOnDropHandle<()>,
}

impl<S: State> Runner<S> {
    /// Makes a runner.
    pub fn new(graph: Arc<Graph<S>>, store: Arc<dyn Store>) -> Self {
        Self { graph, store, owner: lease::owner_name().into(), tenant: "default".into() }
    }

    /// Makes the threads that this runner creates belong to a tenant.
    #[must_use]
    pub fn for_tenant(mut self, tenant: &str) -> Self {
        self.tenant = tenant.into();
        self
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
    /// As [`Store::create`].
    pub async fn create(
        &self,
        thread: ThreadId,
        title: Option<String>,
    ) -> Result<ThreadInfo, Error> {
        let new = NewThread {
            id: thread,
            graph: self.graph.name().to_owned(),
            title,
            root: None,
            namespace: String::new(),
            tenant: self.tenant.to_string(),
        };
        Ok(self.store.create(new).await?)
    }

    /// Gives a thread a new input and runs it to its end or its next interrupt.
    ///
    /// The input is merged like a node's update, is itself a step, and starts the graph's entry nodes.
    ///
    /// # Errors
    /// [`Error::Unfinished`] when the thread's last run has not ended, and whatever the store reports.
    pub async fn start(
        &self,
        thread: ThreadId,
        input: S::Update,
        options: RunOptions<S>,
    ) -> Result<RunOutcome<S>, Error> {
        self.check_startable(&self.store.info(thread).await?)?;
        let held = self.hold(thread, &options).await?;
        if !held.standing.frontier.tasks.is_empty() {
            self.release(
                &held,
                RunStatus::Cancelled,
                ThreadStatus::Failed,
                Some("the run before has not ended"),
            )
            .await?;
            return Err(Error::Unfinished { thread, status: "unfinished" });
        }
        self.drive(held, Some(input), options).await
    }

    /// Goes on with a thread after a crash, a failure, a stop, or answers to its interrupts.
    ///
    /// # Errors
    /// [`Error::Finished`] when there is nothing to go on with, and whatever the store reports.
    pub async fn resume(
        &self,
        thread: ThreadId,
        options: RunOptions<S>,
    ) -> Result<RunOutcome<S>, Error> {
        let info = self.store.info(thread).await?;
        self.check_graph(&info)?;
        // A fork is idle too, and goes on where it was forked if something was to run there.
        let idle = info.status == ThreadStatus::Idle;
        if info.head == 0 || (idle && !self.has_next(thread).await?) {
            return Err(Error::Finished { thread });
        }
        let held = self.hold(thread, &options).await?;
        self.drive(held, None, options).await
    }

    /// Returns whether something is to run after the newest step.
    async fn has_next(&self, thread: ThreadId) -> Result<bool, Error> {
        let Some(newest) = self.store.history(thread, None, 1).await?.pop() else {
            return Ok(false);
        };
        let frontier: Frontier = serde_json::from_slice(&newest.frontier)
            .map_err(|error| StoreError::Damaged(error.to_string()))?;
        Ok(!frontier.tasks.is_empty())
    }

    /// Reads a thread's state at a step, or at its head.
    ///
    /// # Errors
    /// As [`stand_up`].
    pub async fn state(&self, thread: ThreadId, at: Option<u64>) -> Result<StateView<S>, Error> {
        let Standing { info, seq, state, frontier, .. } =
            stand_up::<S>(self.store.as_ref(), thread, at).await?;
        let next = frontier.tasks.into_iter().map(|task| task.node).collect();
        Ok(StateView { info, seq, state, next })
    }

    /// Edits a thread's state as if `as_node` had written it; the edit is a step, and that node's routes are next.
    ///
    /// # Errors
    /// Whatever the store reports; [`Error::Update`] when the update has no JSON form.
    pub async fn update_state(
        &self,
        thread: ThreadId,
        update: S::Update,
        as_node: &str,
    ) -> Result<StateView<S>, Error> {
        self.check_graph(&self.store.info(thread).await?)?;
        let options = RunOptions::default();
        let held = self.hold(thread, &options).await?;
        let Standing { mut state, seq, ref frontier, .. } = held.standing.clone();
        let written = vec![Written { node: as_node.to_owned(), update, goto: None }];
        let merged = merge(&self.graph, &mut state, written, frontier.joins.clone())?;
        let mut writer = self.writer(&held, Durability::Sync);
        let clears_pending = !held.standing.pending.is_empty();
        let next: Vec<String> =
            merged.frontier.tasks.iter().map(|task| task.node.clone()).collect();
        let step = Step {
            seq: seq + 1,
            kind: StepKind::Edit,
            delta: merged.delta,
            frontier: merged.encoded_frontier,
            clears_pending,
        };
        writer.write(step).await?;
        let (status, error) = match next.is_empty() {
            true => (ThreadStatus::Idle, None),
            false => (
                ThreadStatus::Failed,
                Some("the state was edited; resume the thread to go on from it"),
            ),
        };
        self.release(&held, RunStatus::Done, status, error).await?;
        let info = self.store.info(thread).await?;
        Ok(StateView { info, seq: seq + 1, state, next })
    }

    fn check_graph(&self, info: &ThreadInfo) -> Result<(), Error> {
        if info.graph == self.graph.name() {
            return Ok(());
        }
        let (found, wanted) = (info.graph.clone(), self.graph.name().to_owned());
        Err(Error::WrongGraph { thread: info.id, found, wanted })
    }

    fn check_startable(&self, info: &ThreadInfo) -> Result<(), Error> {
        self.check_graph(info)?;
        match info.status {
            ThreadStatus::Idle | ThreadStatus::Busy => Ok(()),
            other => Err(Error::Unfinished { thread: info.id, status: other.as_str() }),
        }
    }

    /// Takes the lease, stands the state up and starts a run row.
    async fn hold(&self, thread: ThreadId, options: &RunOptions<S>) -> Result<Held<S>, Error> {
        let info = lease::claim(self.store.as_ref(), thread, &self.owner).await?;
        let lease =
            lease::keep(Arc::clone(&self.store), thread, info.fence, options.cancel.clone());
        let mut standing = stand_up::<S>(self.store.as_ref(), thread, None).await?;
        standing.info = info;
        let run = RunId::new();
        self.store.begin_run(thread, standing.info.fence, run).await?;
        Ok(Held { standing, run, _lease: lease })
    }

    fn writer(&self, held: &Held<S>, durability: Durability) -> Writer {
        let claim = Claim {
            thread: held.standing.info.id,
            fence: held.standing.info.fence,
            run: held.run,
            schema_version: S::SCHEMA_VERSION,
        };
        Writer::new(Arc::clone(&self.store), claim, durability, held.standing.hash)
    }

    async fn release(
        &self,
        held: &Held<S>,
        run: RunStatus,
        thread: ThreadStatus,
        error: Option<&str>,
    ) -> Result<(), Error> {
        let info = &held.standing.info;
        Ok(self.store.end_run(info.id, info.fence, held.run, run, thread, error).await?)
    }

    async fn drive(
        &self,
        held: Held<S>,
        input: Option<S::Update>,
        options: RunOptions<S>,
    ) -> Result<RunOutcome<S>, Error> {
        let thread = held.standing.info.id;
        let mut writer = self.writer(&held, options.durability);
        let mut snapshots =
            Snapshots::new(thread, held.standing.snapshot_size, held.standing.since_snapshot);
        let mut position = Position {
            state: Arc::clone(&held.standing.state),
            head: held.standing.seq,
            frontier: held.standing.frontier.clone(),
            done: held.standing.pending.clone(),
        };
        let mut has_pending = !position.done.is_empty();
        let effects = match input {
            Some(input) => {
                has_pending = false;
                self.take_input(&mut position, input, &mut writer, &mut snapshots).await?;
                Arc::default()
            }
            None => Arc::new(recorded(self.store.as_ref(), thread, position.head + 1).await?),
        };
        let first_step = position.head + 1;
        let mut engine =
            Engine::new(Arc::clone(&self.graph), position, options.limits, options.wants);
        let mut drive = Drive {
            store: &self.store,
            thread,
            run: held.run,
            fence: held.standing.info.fence,
            namespace: held.standing.info.namespace.clone().into(),
            options: &options,
            writer,
            snapshots,
            recorded: effects,
            first_step,
            has_pending,
        };
        let result = drive.drive(&mut engine).await;
        let Drive { mut writer, snapshots, .. } = drive;
        let flushed = writer.flush().await;
        snapshots.finish().await;
        let result = match result.and_then(|result| flushed.map(|()| result)) {
            Ok(result) => result,
            Err(error) => return Err(self.broken(&held, error).await),
        };
        let (run_status, thread_status, error) = statuses(&result);
        self.release(&held, run_status, thread_status, error.as_deref()).await?;
        let steps = engine.steps_done();
        Ok(RunOutcome {
            thread,
            run: held.run,
            result,
            state: Arc::clone(engine.state()),
            head: first_step - 1 + steps,
            steps,
        })
    }

    /// Gives a thread back whose run broke on the store, as far as the store still answers.
    async fn broken(&self, held: &Held<S>, error: StoreError) -> Error {
        if !matches!(error, StoreError::Fenced { .. }) {
            let text = error.to_string();
            if let Err(second) =
                self.release(held, RunStatus::Failed, ThreadStatus::Failed, Some(&text)).await
            {
                tracing::debug!(%second, "the thread could not be given back; its lease will run out");
            }
        }
        error.into()
    }

    /// Commits the input as a step that leads to the entry nodes.
    async fn take_input(
        &self,
        position: &mut Position<S>,
        input: S::Update,
        writer: &mut Writer,
        snapshots: &mut Snapshots,
    ) -> Result<(), Error> {
        let encode =
            |error: serde_json::Error| Error::Update(EngineError::Encode(error.to_string()));
        let written = vec![Written::<S> { node: INPUT.to_owned(), update: input, goto: None }];
        let merged = merge(&self.graph, &mut position.state, written, BTreeMap::new())?;
        let frontier = Frontier::of(self.graph.entry().iter().map(String::as_str));
        let encoded = serde_json::to_vec(&frontier).map_err(encode)?;
        let (seq, size) = (position.head + 1, merged.delta.len());
        let step = Step {
            seq,
            kind: StepKind::Input,
            delta: merged.delta,
            frontier: encoded,
            clears_pending: false,
        };
        writer.write(step).await?;
        snapshots.committed(&self.store, seq, size, &position.state);
        position.head = seq;
        position.frontier = frontier;
        position.done.clear();
        Ok(())
    }
}

fn statuses(result: &RunResult) -> (RunStatus, ThreadStatus, Option<String>) {
    match result {
        RunResult::Done => (RunStatus::Done, ThreadStatus::Idle, None),
        RunResult::Interrupted(_) => (RunStatus::Interrupted, ThreadStatus::Interrupted, None),
        RunResult::Cancelled => (
            RunStatus::Cancelled,
            ThreadStatus::Failed,
            Some("the run was stopped; resume it to go on".into()),
        ),
        RunResult::Failed(error @ EngineError::Missing { .. }) => {
            (RunStatus::Failed, ThreadStatus::Parked, Some(error.to_string()))
        }
        RunResult::Failed(error) => {
            (RunStatus::Failed, ThreadStatus::Failed, Some(error.to_string()))
        }
    }
}
