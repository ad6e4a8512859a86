//! A graph as a node of another one: its steps are checkpointed in a separate thread below the parent's.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::outcome::{Error, RunOptions, RunOutcome, RunResult};
use super::run::Runner;
use crate::checkpoint::{Error as StoreError, NewThread, ThreadInfo, ThreadStatus};
use crate::clock;
use crate::graph::{Context, Limits, Node, NodeError, NodeOutput, Result, RunEvent, State};

type Enter<P, C> = Arc<dyn Fn(&Context<P>) -> Result<<C as State>::Update> + Send + Sync>;
type Leave<P, C> = Arc<dyn Fn(&Context<P>, &C) -> Result<NodeOutput<P>> + Send + Sync>;

/// Events of a subgraph under way to the parent's listener.
const EVENTS: usize = 64;

/// How often a child that another hold seems to run is tried again, within two leases.
const PATIENCE: u32 = 32;

/// Runs a graph with its own state inside a node; its interrupts are the parent's, its crash recovery its own.
///
/// The child's thread is named by its place in the parent (`team:3:0` is task 0 of step 3, at node
/// `team`; deeper ones are joined by `|`). Its events reach the parent's listener as
/// [`RunEvent::Nested`], and a stop of the parent stops it.
pub struct Subgraph<P: State, C: State> {
    runner: Runner<C>,
    enter: Enter<P, C>,
    leave: Leave<P, C>,
    limits: Limits,
}

impl<P: State, C: State> std::fmt::Debug for Subgraph<P, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Subgraph").field(&self.runner).finish()
    }
}

impl<P: State, C: State> Subgraph<P, C> {
    /// Makes a node of a graph: `enter` turns the parent's state into its input, `leave` its end into the parent's update.
    ///
    /// The runner's store must be the parent's: the child's thread refers to the parent's.
    pub fn new(
        runner: Runner<C>,
        enter: impl Fn(&Context<P>) -> Result<C::Update> + Send + Sync + 'static,
        leave: impl Fn(&Context<P>, &C) -> Result<NodeOutput<P>> + Send + Sync + 'static,
    ) -> Self {
        let enter = Arc::new(enter);
        let leave = Arc::new(leave);
        Self { runner, enter, leave, limits: Limits::default() }
    }

    /// Bounds each run of the subgraph.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Runs the subgraph from its last step to its end, and returns its state.
    ///
    /// A replay runs the recorded steps of the subgraph again and compares them.
    ///
    /// # Errors
    /// [`NodeError`], also while questions of the subgraph are open.
    pub async fn run_to_end(&self, ctx: &Context<P>) -> Result<Arc<C>> {
        let state = self.run_child(ctx).await?;
        if ctx.port().is_replay() {
            self.replay_child(ctx).await?;
        }
        Ok(state)
    }

    async fn replay_child(&self, ctx: &Context<P>) -> Result<()> {
        let child = ctx.place().thread.child(&ctx.place().subgraph());
        let report = self.runner.replay(child, None).await.map_err(of_child)?;
        match report.divergence {
            None => Ok(()),
            Some(divergence) => {
                let message = format!(
                    "step {} of the subgraph {} differs from the recorded one",
                    divergence.step,
                    self.runner.graph().name()
                );
                Err(NodeError::failed("divergence", message))
            }
        }
    }

    async fn child(&self, ctx: &Context<P>, namespace: &str) -> Result<ThreadInfo, Error> {
        let place = ctx.place();
        let id = place.thread.child(namespace);
        let store = self.runner.store();
        match store.info(id).await {
            Err(StoreError::UnknownThread(_)) if !ctx.port().is_replay() => {
                let parent = store.info(place.thread).await?;
                let new = NewThread {
                    id,
                    graph: self.runner.graph().name().to_owned(),
                    title: None,
                    root: Some(parent.top()),
                    namespace: namespace.to_owned(),
                    tenant: parent.tenant,
                };
                Ok(store.create(new).await?)
            }
            // A client chose the id of this place for a thread.
            Ok(other) if other.namespace != namespace => Err(StoreError::ThreadExists(id).into()),
            found => Ok(found?),
        }
    }

    /// Runs the child from its last step to its end.
    async fn run_child(&self, ctx: &Context<P>) -> Result<Arc<C>> {
        let namespace = ctx.place().subgraph();
        ctx.keep_notes().await?;
        let mut tries = 0;
        let outcome = loop {
            // Before each try: its last holder may have continued after the parent was taken over.
            let child = self.child(ctx, &namespace).await.map_err(of_child)?;
            let is_done = child.head > 0 && child.status == ThreadStatus::Idle;
            if is_done || ctx.port().is_replay() {
                if !is_done {
                    let message = "the recorded subgraph did not come to its end".to_owned();
                    return Err(NodeError::failed("divergence", message));
                }
                return Ok(self.runner.state(child.id, None).await.map_err(of_child)?.state);
            }
            match self.once(ctx, &child, &namespace).await? {
                // The parent was taken over, but the child's lease has not run out yet.
                Err(Error::Store(StoreError::Busy { .. })) if tries < PATIENCE => {
                    tries += 1;
                    tokio::select! {
                        () = clock::sleep(self.runner.lease * 2 / PATIENCE) => {}
                        () = ctx.port().until_cancelled() => return Err(NodeError::Cancelled),
                    }
                }
                other => break other.map_err(of_child)?,
            }
        };
        match outcome.result {
            RunResult::Done => Ok(outcome.state),
            RunResult::Interrupted(interrupts) => Err(NodeError::Interrupted(interrupts)),
            RunResult::Cancelled | RunResult::Queued => Err(NodeError::Cancelled),
            RunResult::Failed(error) => Err(NodeError::failed("subgraph", error.to_string())),
        }
    }

    /// Runs the child once; only the error of the run itself can be that the child is busy.
    async fn once(
        &self,
        ctx: &Context<P>,
        child: &ThreadInfo,
        namespace: &str,
    ) -> Result<Result<RunOutcome<C>, Error>> {
        let mut options = RunOptions { limits: self.limits, ..RunOptions::default() };
        let mut heard = None;
        if let Some(wants) = ctx.port().wants() {
            let (sender, receiver) = mpsc::channel(EVENTS);
            (options.wants, options.events, heard) = (wants, Some(sender), Some(receiver));
        }
        let stop = options.cancel.clone();
        let running = async {
            Ok::<_, NodeError>(match child.head {
                0 => self.runner.start(child.id, (self.enter)(ctx)?, options).await,
                _ => self.runner.resume(child.id, options).await,
            })
        };
        let publishing = async {
            let Some(events) = &mut heard else { return };
            while let Some(event) = events.recv().await {
                let nested: RunEvent<P> = event.into_nested(namespace);
                if let RunEvent::Nested { namespace, modes, event } = nested {
                    ctx.port().nested(namespace, modes, event).await;
                }
            }
        };
        let stopping = async {
            ctx.port().until_cancelled().await;
            stop.cancel();
            std::future::pending::<()>().await;
        };
        // The run ends with its sender, so that the last event is passed on before the node continues.
        tokio::select! {
            (outcome, ()) = futures::future::join(running, publishing) => outcome,
            () = stopping => Err(NodeError::Cancelled),
        }
    }
}

/// Makes the error of a child's runner that of the parent's node.
fn of_child(error: Error) -> NodeError {
    match error {
        Error::Store(error) => NodeError::Recorder(Box::new(error)),
        error => NodeError::failed("subgraph", error.to_string()),
    }
}

#[async_trait]
impl<P: State, C: State> Node<P> for Subgraph<P, C> {
    async fn run(&self, ctx: Context<P>) -> Result<NodeOutput<P>> {
        let state = self.run_child(&ctx).await?;
        (self.leave)(&ctx, &state)
    }
}
