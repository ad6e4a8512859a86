//! The loop that performs the engine's commands.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};

use super::outcome::RunResult;
use super::task::{Ended, RunContext};
use super::writer::{Snapshots, Step, Writer};
use crate::checkpoint::{Cause, Codec, Encoded, Error, PendingRow, Result, StepKind};
use crate::clock;
use crate::failpoint::{self, Point};
use crate::graph::{BlobText, Command, Engine, Event, NodeError, NodeRun, State};
use crate::journal::{Mode, Recorded};

pub(super) struct Drive<S: State> {
    pub context: RunContext<S>,
    pub deadline: Option<Duration>,
    /// How long the lease lasts.
    pub lease: Duration,
    pub writer: Writer,
    pub snapshots: Snapshots,
    /// Effects recorded before this run, grouped by their step.
    pub recorded: BTreeMap<u64, Arc<Recorded>>,
    /// Whether the run continues after a failure, so that failed effects are tried again.
    pub again: bool,
    /// The step at which the run begins.
    pub first_step: u64,
    pub has_pending: bool,
    /// Texts of finished tasks whose writes could not be stored before their step.
    pub texts: Vec<BlobText>,
}

/// The tasks of the step under way.
///
/// They are in this future and advance only while it polls them. It therefore awaits everything else through
/// [`Tasks::beside`], because a task can hold the store's only connection.
#[derive(Default)]
struct Tasks<S: State> {
    running: FuturesUnordered<BoxFuture<'static, Ended<S>>>,
    /// Tasks that ended during another await.
    ended: VecDeque<Ended<S>>,
}

impl<S: State> Tasks<S> {
    /// Returns the next task that ended; `None` if no task is left.
    async fn next(&mut self) -> Option<Ended<S>> {
        match self.ended.pop_front() {
            Some(ended) => Some(ended),
            None => self.running.next().await,
        }
    }

    /// Awaits something while the tasks run.
    async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(ended) = self.running.next() => self.ended.push_back(ended),
            }
        }
    }
}

impl<S: State> Drive<S> {
    /// Runs until the engine issues no more commands.
    ///
    /// # Errors
    /// [`Error`] if the store failed; acknowledged steps stay.
    pub(super) async fn drive(&mut self, engine: &mut Engine<S>) -> Result<RunResult> {
        let mut tasks = Tasks::default();
        let result = self.work(engine, &mut tasks).await;
        if let Err(error) = &result
            && !matches!(error, Error::Fenced { .. })
        {
            // Calls that were sent may still end and be recorded; for no longer than the lease lasts.
            self.context.stop.cancel();
            let ending = async { while tasks.next().await.is_some() {} };
            let _ = tokio::time::timeout(self.lease, ending).await;
        }
        result
    }

    async fn work(&mut self, engine: &mut Engine<S>, tasks: &mut Tasks<S>) -> Result<RunResult> {
        let mut out = Vec::new();
        let mut queue: VecDeque<Command<S>> = VecDeque::new();
        let stop = self.context.stop.clone();
        let mut deadline = match self.deadline {
            Some(limit) => clock::sleep(limit).boxed(),
            None => futures::future::pending().boxed(),
        };
        let mut stopping = stop.is_cancelled();
        let mut late = false;
        if stopping {
            engine.handle(Event::Stop, &mut out);
        }
        engine.start(&mut out);
        loop {
            queue.extend(out.drain(..));
            while let Some(command) = queue.pop_front() {
                if let Some(result) = self.perform(command, engine, tasks, &mut out).await? {
                    return Ok(result);
                }
                queue.extend(out.drain(..));
            }
            tokio::select! {
                // Stops come first: a graph whose nodes are always ready must not outrun them.
                biased;
                () = stop.cancelled(), if !stopping => {
                    stopping = true;
                    engine.handle(Event::Stop, &mut out);
                }
                () = &mut deadline, if !late && !stopping => {
                    // From here on the tasks see a stop; the engine knows the reason.
                    (late, stopping) = (true, true);
                    engine.handle(Event::Deadline, &mut out);
                    stop.cancel();
                }
                Some((task, result)) = tasks.next() => {
                    let result = match result {
                        Err(NodeError::Recorder(error)) => return Err(as_store_error(error)),
                        other => other,
                    };
                    engine.handle(Event::Ended { task, result }, &mut out);
                }
                // The engine never leaves a step without tasks or a command.
                else => return Ok(RunResult::Cancelled),
            }
        }
    }

    async fn perform(
        &mut self,
        command: Command<S>,
        engine: &mut Engine<S>,
        tasks: &mut Tasks<S>,
        out: &mut Vec<Command<S>>,
    ) -> Result<Option<RunResult>> {
        match command {
            Command::Emit(event) => tasks.beside(self.context.listeners.tell(event)).await,
            Command::Run(run) => {
                let (mode, recorded) = tasks.beside(self.history_of(&run)).await?;
                tasks.running.push(self.context.launch(run, mode, recorded));
            }
            Command::SavePending { task, body, texts } => {
                tasks.beside(self.keep(engine.step(), task, body, texts)).await?;
            }
            Command::Commit { seq, delta, frontier, mut texts, .. } => {
                texts.append(&mut self.texts);
                let size = delta.len();
                let clears_pending = std::mem::take(&mut self.has_pending);
                let kind = StepKind::Loop;
                let step = Step { seq, kind, delta, frontier, clears_pending, texts };
                self.writer.write(step).await?;
                if self.snapshots.is_due(size).await && self.writer.settle().await? {
                    self.snapshots.write(&self.context.store, seq, engine.state());
                }
                engine.handle(Event::Committed, out);
                // A graph that never waits for anything lets others run too.
                tokio::task::coop::consume_budget().await;
            }
            Command::Suspend(interrupts) => return Ok(Some(RunResult::Interrupted(interrupts))),
            Command::Finish => return Ok(Some(RunResult::Done)),
            Command::Stopped => return Ok(Some(RunResult::Cancelled)),
            Command::Fail(error) => return Ok(Some(RunResult::Failed(error))),
        }
        Ok(None)
    }

    /// Stores the write of a task, unless earlier steps are not stored yet.
    async fn keep(
        &mut self,
        step: u64,
        task: u32,
        body: Vec<u8>,
        mut texts: Vec<BlobText>,
    ) -> Result<()> {
        if !self.writer.settle().await? {
            self.texts.append(&mut texts);
            return Ok(());
        }
        let body = Encoded { codec: Codec::Json, bytes: body };
        let row = PendingRow { step, task, body };
        let blobs = self.writer.blobs(step, &texts)?;
        let RunContext { store, claimed, .. } = &self.context;
        let kept = store.save_pending(claimed.fence, &row, &blobs);
        failpoint::wrap(Point::PendingSave, kept).await?;
        self.has_pending = true;
        Ok(())
    }

    /// Finds the recorded effects of a task, and how they are used.
    async fn history_of(&self, run: &NodeRun<S>) -> Result<(Mode, Arc<Recorded>)> {
        if run.attempt > 1 {
            let rows = self.context.store.effects(self.context.thread, Some(run.step)).await?;
            return Ok((Mode::Again, Arc::new(rows.into_iter().collect())));
        }
        let mode = if self.again && run.step == self.first_step { Mode::Again } else { Mode::Live };
        Ok((mode, self.recorded.get(&run.step).cloned().unwrap_or_default()))
    }
}

fn as_store_error(error: Cause) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(error) => Error::damaged(error),
    }
}
