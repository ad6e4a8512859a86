//! Drives a run to its end, and then the next one of its thread.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use serde_json::{Value, json};

use super::claims::Stop;
use super::ends::{Driven, End, RunState, decide};
use super::kept::{self, Cancel, Ended, Run, RunEnding, RunStatus};
use super::order::Ordered;
use super::{Along, Asked, Error, Finished, Order, Result, Service, answers, stops};
use perihelion_engine::checkpoint::ThreadStatus;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::RunOptions;
use perihelion_people::Scope;
use perihelion_runtime::{ALONG, Answer, Job, RunReport, RunStatusView};
use perihelion_star::GraphState;

/// Number of drives of a run after which a permanent error of the store ends it.
const TRIES: u32 = 8;

/// How many times [`PATIENCE`] the longest pause between two drives of a run lasts.
const SLOWEST: u32 = 16;

/// How long a run waits if another process, such as a command line, holds its thread.
const CLAIMED_BY_OTHERS: TimeDelta = TimeDelta::milliseconds(500);

/// How long it is until a row that could not be written is tried again.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long another process that holds a run's thread has to end it before the thread is claimed.
const HOLDER_ANSWERS: Duration = Duration::from_secs(10);

/// The status of a run after its last drive here.
enum Decided {
    /// It has ended, and its end is written.
    Written(Afterwards),
    Open {
        end: End,
        /// The requested cancellation, if any.
        asked: Option<Cancel>,
        /// Whether its thread may contain a part of it.
        has_moved: bool,
        /// Whether its followers received the end from the thread itself.
        is_announced: bool,
    },
}

/// What is known after the last drive of a run here.
pub(super) struct Afterwards {
    /// The run, if it succeeded.
    pub finished: Option<Arc<Finished>>,
    /// Whether another run of its thread may wait.
    pub has_next: bool,
    pub is_announced: bool,
}

impl Service {
    pub(super) async fn drive(&self, run: &Run, stop: &Stop) -> Afterwards {
        let left = |is_announced| Afterwards { finished: None, has_next: true, is_announced };
        match self.drive_to_end(run, stop).await {
            Some(Decided::Written(after)) => after,
            // Of a run that another process has by now, that process writes the end.
            None => left(false),
            Some(Decided::Open { end, asked, has_moved, is_announced }) => {
                let end = match asked {
                    Some(Cancel::Rollback) => self.roll_back(run, has_moved, end).await,
                    _ => end,
                };
                self.settle(run, &end).await;
                left(is_announced)
            }
        }
    }

    /// Drives a run until it is decided what becomes of it; `None` where it was put back, another process drives it by now,
    /// or it was deleted.
    async fn drive_to_end(&self, run: &Run, stop: &Stop) -> Option<Decided> {
        let mut is_again = run.attempt > 1;
        let mut tries = 0;
        loop {
            tries += 1;
            let driven = match self.perform(run, stop, is_again).await {
                Ok(report) => {
                    if report.status == RunStatusView::Done
                        && let Some(after) = self.end_undisturbed(run, &report).await
                    {
                        return Some(Decided::Written(after));
                    }
                    let waits = report.status == RunStatusView::Interrupted;
                    self.note_asked(ThreadId(run.thread), waits).await;
                    Driven::reported(&report)
                }
                Err(error) => {
                    tracing::warn!(%error, run = %run.id, "an attempt at a run failed");
                    Driven::broken(&error, tries >= TRIES)
                }
            };
            // Of a thread that another process holds, an earlier drive may have made steps.
            let state = match &driven {
                Driven::Lost => self.run_state(run).await.unwrap_or(RunState::Unknown),
                Driven::Claimed if is_again => {
                    self.run_state(run).await.unwrap_or(RunState::NotBegun)
                }
                Driven::Claimed => RunState::NotBegun,
                _ => RunState::Unknown,
            };
            let is_announced = matches!(driven, Driven::Reported(..));
            let has_moved = state != RunState::NotBegun;
            let mut asked = self.cancel_of(run).await?;
            let stopping = self.parts.stop.is_cancelled();
            let cancelled = asked.is_some() || stop.run.is_cancelled();
            let mut end = decide(driven.clone(), state.clone(), cancelled, stopping);
            if end == End::PutBack {
                if self.settle(run, &end).await {
                    return None;
                }
                // It was cancelled in the meantime.
                asked = self.cancel_of(run).await?;
                end = decide(driven, state, true, stopping);
            }
            match end {
                End::Again => {}
                End::StoppedElsewhere => match self.end_elsewhere(run).await {
                    Ok(()) => {
                        let end = End::Settled(RunStatus::Interrupted, None);
                        return Some(Decided::Open { end, asked, has_moved, is_announced });
                    }
                    Err(error) => {
                        tracing::warn!(%error, run = %run.id, "could not stop a run; trying again");
                    }
                },
                end => return Some(Decided::Open { end, asked, has_moved, is_announced }),
            }
            is_again = true;
            tokio::select! {
                () = self.parts.stop.cancelled() => {}
                () = clock::sleep(PATIENCE * tries.min(SLOWEST)) => {}
            }
        }
    }

    /// Ends a run whose thread another process holds, such as a worker that was quicker.
    async fn end_elsewhere(&self, run: &Run) -> Result<()> {
        let threads = self.runtime().threads();
        stops::end_elsewhere(self.kept(), &threads, ThreadId(run.thread), HOLDER_ANSWERS).await
    }

    /// Returns how a run must be cancelled, as soon as the database says so; `None` if another process has claimed it.
    async fn cancel_of(&self, run: &Run) -> Option<Option<Cancel>> {
        loop {
            match self.kept().run(run.thread, run.id).await {
                Ok(found) => {
                    let is_mine = |run: &Run| run.owner.as_deref() == Some(&self.parts.owner);
                    return found.filter(is_mine).map(|run| run.cancel);
                }
                Err(_) if self.parts.stop.is_cancelled() => return Some(None),
                Err(error) => {
                    tracing::warn!(%error, "could not read the row of a run; trying again");
                    clock::sleep(PATIENCE).await;
                }
            }
        }
    }

    /// Ends a run that is done, unless something else has to be decided first: `None`.
    async fn end_undisturbed(&self, run: &Run, report: &RunReport) -> Option<Afterwards> {
        let status = RunStatus::Success;
        let now = clock::now().trunc_subsecs(6);
        let ended = Ended { if_undisturbed: true, ..Ended::new(status) };
        // Otherwise its end is decided, and written again.
        let written = self.write_end(run, ended, now).await.unwrap_or_default()?;
        let RunEnding { last_step, last_event, has_next } = written;
        let owner = None;
        let run = Run { status, owner, last_step, last_event, updated_at: now, ..run.clone() };
        let state = report.state.clone();
        let finished = Some(Arc::new(Finished { run, state }));
        Some(Afterwards { finished, has_next, is_announced: true })
    }

    async fn write_end(
        &self,
        run: &Run,
        ended: Ended<'_>,
        now: DateTime<Utc>,
    ) -> Result<Option<RunEnding>, kept::Error> {
        let kwargs = without_files(&run.kwargs);
        let ended = Ended { kwargs: kwargs.as_ref(), by: Some(&self.parts.owner), ..ended };
        self.kept().end_run(run.thread, run.id, ended, now).await
    }

    /// Writes the end of a run, and repeats that until the database accepts it; returns false for one that is not put back
    /// because it is cancelled.
    async fn settle(&self, run: &Run, end: &End) -> bool {
        loop {
            let written = match end {
                End::Settled(status, error) => {
                    let ended = Ended { error: error.clone(), ..Ended::new(*status) };
                    self.write_end(run, ended, clock::now()).await.map(|_| true)
                }
                End::Left | End::Again | End::StoppedElsewhere => {
                    let owner = &self.parts.owner;
                    self.kept().leave_run(run.thread, run.id, owner).await.map(|()| true)
                }
                End::PutBack => {
                    let owner = &self.parts.owner;
                    let pause = CLAIMED_BY_OTHERS;
                    self.kept().put_back(run.thread, run.id, owner, clock::now(), pause).await
                }
            };
            match written {
                Err(error) if error.is_passing() && !self.parts.stop.is_cancelled() => {
                    tracing::warn!(%error, "could not store the end of a run; trying again");
                    clock::sleep(PATIENCE).await;
                }
                Err(error) => {
                    tracing::error!(%error, run = %run.id, "could not store the end of a run");
                    return true;
                }
                Ok(is_written) => return is_written,
            }
        }
    }

    /// Drives a run once; a repeated drive continues with the parts that its thread contains.
    async fn perform(&self, run: &Run, stop: &Stop, is_again: bool) -> Result<RunReport> {
        let thread = ThreadId(run.thread);
        if !run.began_at_once() {
            // Otherwise it was checked when the run was accepted.
            self.check_enabled(thread).await?;
        }
        let options = RunOptions {
            cancel: stop.drive.clone(),
            withdrawn: stop.run.clone(),
            hands_over: true,
            ..self.runtime().run_options()
        };
        let Ordered { order, options, begins_work } = self.ordered(run, options).await?;
        if is_again && self.has_begun(run, &order).await? {
            self.continue_run(thread, options).await
        } else {
            // A turn that begins without an allowance says so in its answer.
            if begins_work && order.turn().is_none() {
                self.check_day().await?;
            }
            self.begin(run, &order, options, is_again).await
        }
    }

    async fn begin(
        &self,
        run: &Run,
        order: &Order,
        options: RunOptions<GraphState>,
        is_again: bool,
    ) -> Result<RunReport> {
        let thread = ThreadId(run.thread);
        let runtime = self.runtime();
        let has_waited = is_again || !run.began_at_once();
        if order.is_bound && has_waited {
            self.check_user(thread, order.user.as_deref()).await?;
        }
        if let Some(at) = order.at {
            runtime.go_back(thread, at).await?;
        }
        // Nothing was open when it was accepted, which was just now.
        let is_new = order.at.is_none() && !has_waited && order.clarifies.is_none();
        let job = match &order.asked {
            Asked::Turn(turn) if is_new => {
                let tenant = self.tenant().to_owned();
                Job::NewTurn { thread, tenant, request: turn.clone() }
            }
            _ => self.job(thread, order, is_again).await?,
        };
        Ok(runtime.perform(job, options).await?)
    }

    /// Returns the work of an order when its turn comes.
    async fn job(&self, thread: ThreadId, order: &Order, is_again: bool) -> Result<Job> {
        Ok(match &order.asked {
            Asked::Turn(turn) => Job::Turn { thread, request: turn.clone() },
            Asked::Resume(given) => {
                let view = self.runtime().threads().view(thread).await?;
                if let Some(along) = &order.along
                    && view.open.is_empty()
                {
                    let Along { update, goto, .. } = along.clone();
                    return Ok(Job::Edit { thread, update, as_node: None, goto });
                }
                let is_paused = view.info.status == ThreadStatus::Interrupted;
                if is_paused && view.open.is_empty() {
                    // It asks nothing: whatever is sent, it continues.
                    return Ok(Job::Continue { thread });
                }
                let mut given = given.clone();
                if is_again {
                    given = answers::still_open(&given, &view.open);
                    if answers::unknown(&given, &view.open).is_some() {
                        // An attempt before has recorded all of them.
                        return Ok(Job::Continue { thread });
                    }
                }
                let mut answers = answers::read(&given, &view.open)?;
                // The request may be newer than the answer.
                if order.cannot_approve && answers::approvals_in(&answers, &view.open) > 0 {
                    return Err(Error::Forbidden(Scope::Approve.as_str()));
                }
                // Stored with an answer, it is not lost if another process continues the thread.
                if let (Some(along), Some((_, Answer::Value(value)))) =
                    (&order.along, answers.first_mut())
                {
                    *value = json!({ ALONG: along, "value": value });
                }
                Job::Answers { thread, by: order.by.clone(), answers }
            }
            Asked::Input { graph, input } => {
                if self.runtime().graph(graph)?.about().is_hosted {
                    self.kept().give_to_graph(thread.0, graph, i64::MAX).await?;
                }
                Job::Input { thread, input: input.clone() }
            }
            Asked::Edit { update, as_node, goto } => {
                let update = update.clone();
                Job::Edit { thread, update, as_node: as_node.clone(), goto: goto.clone() }
            }
            Asked::Answer { question, answer } => {
                // Somebody may have been quicker: then theirs counts, and it continues with that.
                self.record(thread, *question, order.by.as_deref(), answer.clone()).await?;
                Job::Continue { thread }
            }
            Asked::Continue => Job::Continue { thread },
        })
    }

    /// Continues with what another process began.
    async fn continue_run(
        &self,
        thread: ThreadId,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport> {
        let runtime = self.runtime();
        let info = runtime.store().info(thread).await?;
        if self.is_unfinished(&info).await? {
            Ok(runtime.resume_or_rest(thread, options).await?)
        } else {
            Ok(runtime.at_rest(thread).await?)
        }
    }

    /// Returns a thread to its position before an ended run, and deletes the run; returns how the run ends if it stays.
    async fn roll_back(&self, run: &Run, has_moved: bool, end: End) -> End {
        // A thread that was made for the run is deleted with it.
        if run.temporary || !matches!(end, End::Settled(..)) {
            return end;
        }
        let base = run.base_step.unwrap_or_default();
        loop {
            let deleted = async {
                if has_moved {
                    self.runtime().go_back(ThreadId(run.thread), base).await?;
                }
                Ok::<_, Error>(self.kept().delete_run(run.thread, run.id).await?)
            };
            let Err(error) = deleted.await else { return end };
            tracing::warn!(%error, run = %run.id, "could not roll a run back");
            if !error.is_passing() {
                return end;
            }
            if self.parts.stop.is_cancelled() {
                return End::Left;
            }
            clock::sleep(PATIENCE).await;
        }
    }
}

/// Returns the request without the bytes of images and files, which its thread stores; `None` without attachments.
fn without_files(kwargs: &Value) -> Option<Value> {
    let mut kwargs = kwargs.clone();
    let turn = kwargs.pointer_mut("/order/asked/turn")?.as_object_mut()?;
    turn.remove("attachments").map(|_| kwargs)
}
