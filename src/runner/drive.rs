//! The loop that performs the engine's commands.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};

use super::outcome::{RunOptions, RunResult};
use super::snapshots::Snapshots;
use super::writer::{Step, Writer};
use crate::checkpoint::{Codec, Encoded, Error, PendingRow, StepKind, Store};
use crate::clock;
use crate::graph::{
    Command, Context, Engine, EngineError, Event, NodeError, NodeOutput, NodeRun, Place, Port,
    RunEvent, State, StreamMode,
};
use crate::ids::{RunId, ThreadId};
use crate::journal::{Mode, Publish, Recorded, TaskJournal};

/// One run under way.
pub(super) struct Drive<'a, S: State> {
    pub store: &'a Arc<dyn Store>,
    pub thread: ThreadId,
    pub run: RunId,
    pub fence: u64,
    pub namespace: Arc<str>,
    pub options: &'a RunOptions<S>,
    pub writer: Writer,
    pub snapshots: Snapshots,
    /// Effects recorded for the first step before this run.
    pub recorded: Arc<Recorded>,
    pub first_step: u64,
    pub has_pending: bool,
}

type Ended<S> = (u32, Result<NodeOutput<S>, NodeError>);

impl<S: State> Drive<'_, S> {
    /// Runs until the engine has nothing more to do.
    ///
    /// # Errors
    /// [`Error`] when the store failed; what was acknowledged before stays.
    pub(super) async fn drive(&mut self, engine: &mut Engine<S>) -> Result<RunResult, Error> {
        let mut tasks: FuturesUnordered<BoxFuture<'static, Ended<S>>> = FuturesUnordered::new();
        let mut out = Vec::new();
        let mut queue: VecDeque<Command<S>> = VecDeque::new();
        let cancel = self.options.cancel.clone();
        let mut deadline = match self.options.deadline {
            Some(limit) => clock::sleep(limit).boxed(),
            None => futures::future::pending().boxed(),
        };
        let (mut stopping, mut late) = (false, false);
        engine.start(&mut out);
        loop {
            queue.extend(out.drain(..));
            while let Some(command) = queue.pop_front() {
                match command {
                    Command::Emit(event) => self.tell(event).await,
                    Command::Run(node) => {
                        let running = self.launch(node).await?;
                        tasks.push(running);
                    }
                    Command::SavePending { task, written } => {
                        let step = engine.step();
                        let body = Encoded { codec: Codec::Json, bytes: written };
                        let row = PendingRow { step, task, body };
                        self.store.save_pending(self.thread, self.fence, &row).await?;
                        self.has_pending = true;
                    }
                    Command::Commit { seq, delta, frontier, .. } => {
                        let size = delta.len();
                        let clears_pending = std::mem::take(&mut self.has_pending);
                        let step =
                            Step { seq, kind: StepKind::Loop, delta, frontier, clears_pending };
                        self.writer.write(step).await?;
                        self.snapshots.committed(self.store, seq, size, engine.state());
                        engine.handle(Event::Committed, &mut out);
                    }
                    Command::Suspend(interrupts) => return Ok(RunResult::Interrupted(interrupts)),
                    Command::Finish => return Ok(RunResult::Done),
                    Command::Stopped => return Ok(RunResult::Cancelled),
                    Command::Fail(error) => return Ok(RunResult::Failed(error)),
                }
                queue.extend(out.drain(..));
            }
            tokio::select! {
                biased;
                Some((task, result)) = tasks.next() => {
                    let result = match result {
                        Err(NodeError::Recorder(error)) => return Err(as_store_error(error)),
                        other => other,
                    };
                    engine.handle(Event::Ended { task, result }, &mut out);
                }
                () = cancel.cancelled(), if !stopping => {
                    stopping = true;
                    engine.handle(Event::Stop, &mut out);
                }
                () = &mut deadline, if !late => {
                    late = true;
                    engine.handle(Event::Deadline, &mut out);
                }
                else => return Ok(RunResult::Failed(EngineError::Encode("the engine stopped without a reason".into()))),
            }
        }
    }

    async fn tell(&self, event: RunEvent<S>) {
        if let Some(events) = &self.options.events {
            // A listener that went away does not stop the run.
            let _ = events.send(event).await;
        }
    }

    async fn launch(&self, run: NodeRun<S>) -> Result<BoxFuture<'static, Ended<S>>, Error> {
        let NodeRun { task, node, entry, input, attempt, after, state, step } = run;
        let recorded = if attempt > 1 {
            Arc::new(recorded(self.store.as_ref(), self.thread, step).await?)
        } else if step == self.first_step {
            Arc::clone(&self.recorded)
        } else {
            Arc::default()
        };
        let place = Place {
            thread: self.thread,
            run: self.run,
            step,
            task,
            node: node.into(),
            attempt,
            namespace: Arc::clone(&self.namespace),
        };
        let publish = self.publisher(&place);
        let cancel = self.options.cancel.clone();
        let journal = TaskJournal::new(
            Arc::clone(self.store),
            self.fence,
            place.clone(),
            Mode::Live,
            recorded,
            cancel.clone(),
            publish,
        );
        let port: Arc<dyn Port> = Arc::new(journal);
        let context = Context::new(state, input, place, port);
        Ok(async move {
            if let Some(delay) = after {
                tokio::select! {
                    () = clock::sleep(delay) => {}
                    () = cancel.cancelled() => return (task, Err(NodeError::Cancelled)),
                }
            }
            let running = entry.node().run(context);
            let result = match entry.time_limit() {
                None => running.await,
                Some(limit) => tokio::time::timeout(limit, running).await.unwrap_or_else(|_| {
                    Err(NodeError::retryable(
                        "timeout",
                        format!("it did not finish within {limit:?}"),
                    ))
                }),
            };
            (task, result)
        }
        .boxed())
    }

    fn publisher(&self, place: &Place) -> Option<Publish> {
        let events = self.options.events.clone()?;
        let (step, task, node) = (place.step, place.task, place.node.to_string());
        Some(Arc::new(move |mode: StreamMode, payload| {
            // Live pieces never hold a node up: what a full channel cannot take is dropped.
            let _ = events.try_send(RunEvent::Published {
                mode,
                step,
                task,
                node: node.clone(),
                payload,
            });
        }))
    }
}

/// Reads the effects recorded for a step.
pub(super) async fn recorded(
    store: &dyn Store,
    thread: ThreadId,
    step: u64,
) -> Result<Recorded, Error> {
    let rows = store.effects(thread, Some(step)).await?;
    Ok(rows.into_iter().map(|row| ((row.task, row.key.clone()), row)).collect())
}

fn as_store_error(error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(error) => Error::Damaged(error.to_string()),
    }
}
