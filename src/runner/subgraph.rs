//! A graph as a node of another: its steps are checkpointed in a thread of its own under the parent's.

use std::sync::Arc;

use async_trait::async_trait;

use super::outcome::{Error, RunOptions, RunResult};
use super::run::Runner;
use crate::checkpoint::{Error as StoreError, NewThread, ThreadStatus};
use crate::graph::{Context, Node, NodeError, NodeOutput, State};
use crate::ids::ThreadId;

type Enter<P, C> =
    Arc<dyn Fn(&Context<P>) -> Result<<C as State>::Update, NodeError> + Send + Sync>;
type Leave<P, C> = Arc<dyn Fn(&Context<P>, &C) -> Result<NodeOutput<P>, NodeError> + Send + Sync>;

/// Runs a graph with its own state inside a node; its interrupts are the parent's, its crash recovery its own.
pub struct Subgraph<P: State, C: State> {
    runner: Runner<C>,
    enter: Enter<P, C>,
    leave: Leave<P, C>,
}

impl<P: State, C: State> std::fmt::Debug for Subgraph<P, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Subgraph").field(&self.runner).finish()
    }
}

impl<P: State, C: State> Subgraph<P, C> {
    /// Makes a node of a graph: `enter` turns the parent's state into its input, `leave` its end into the parent's update.
    pub fn new(
        runner: Runner<C>,
        enter: impl Fn(&Context<P>) -> Result<C::Update, NodeError> + Send + Sync + 'static,
        leave: impl Fn(&Context<P>, &C) -> Result<NodeOutput<P>, NodeError> + Send + Sync + 'static,
    ) -> Self {
        Self { runner, enter: Arc::new(enter), leave: Arc::new(leave) }
    }

    /// Finds or makes the child's thread; its place in the parent names it.
    async fn child(&self, ctx: &Context<P>) -> Result<(ThreadId, ThreadStatus, u64), Error> {
        let place = ctx.place();
        let namespace = match place.namespace.as_ref() {
            "" => format!("{}:{}:{}", place.node, place.step, place.task),
            outer => format!("{outer}|{}:{}:{}", place.node, place.step, place.task),
        };
        let thread = place.thread.child(&namespace);
        let store = self.runner.store();
        match store.info(thread).await {
            Ok(info) => Ok((thread, info.status, info.head)),
            Err(StoreError::UnknownThread(_)) => {
                let parent = store.info(place.thread).await?;
                let new = NewThread {
                    id: thread,
                    graph: self.runner.graph().name().to_owned(),
                    title: None,
                    root: Some(parent.root.unwrap_or(parent.id)),
                    namespace,
                    tenant: parent.tenant,
                };
                store.create(new).await?;
                Ok((thread, ThreadStatus::Idle, 0))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn run_child(&self, ctx: &Context<P>) -> Result<Result<Arc<C>, NodeError>, Error> {
        let (thread, status, head) = self.child(ctx).await?;
        let options = RunOptions::default();
        let stop = options.cancel.clone();
        let running = async {
            match (status, head) {
                (_, 0) => match (self.enter)(ctx) {
                    Ok(input) => self.runner.start(thread, input, options).await.map(Ok),
                    Err(error) => Ok(Err(error)),
                },
                (ThreadStatus::Idle, _) => {
                    let view = self.runner.state(thread, None).await?;
                    return Ok(Ok(view.state));
                }
                _ => self.runner.resume(thread, options).await.map(Ok),
            }
            .map(|run| run.and_then(|outcome| result(outcome.result).map(|()| outcome.state)))
        };
        tokio::pin!(running);
        tokio::select! {
            result = &mut running => result,
            () = cancelled(ctx) => {
                stop.cancel();
                running.await
            }
        }
    }
}

/// Resolves when the parent's run is being stopped.
async fn cancelled<P: State>(ctx: &Context<P>) {
    ctx.port().until_cancelled().await;
}

fn result(result: RunResult) -> Result<(), NodeError> {
    match result {
        RunResult::Done => Ok(()),
        RunResult::Interrupted(interrupts) => Err(NodeError::Interrupted(interrupts)),
        RunResult::Cancelled => Err(NodeError::Cancelled),
        RunResult::Failed(error) => Err(NodeError::failed("subgraph", error.to_string())),
    }
}

#[async_trait]
impl<P: State, C: State> Node<P> for Subgraph<P, C> {
    async fn run(&self, ctx: Context<P>) -> Result<NodeOutput<P>, NodeError> {
        let state = match self.run_child(&ctx).await {
            Ok(state) => state?,
            Err(Error::Store(error)) => return Err(NodeError::Recorder(Box::new(error))),
            Err(error) => return Err(NodeError::failed("subgraph", error.to_string())),
        };
        (self.leave)(&ctx, &state)
    }
}
