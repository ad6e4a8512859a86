//! Drives a run to its end, and then the next one of its thread.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::kept::{Begin, Cancel, Ended, Run, RunStatus};
use super::{Asked, Error, Order, Service, answers, stops};
use perihelion_engine::checkpoint::{self, ThreadStatus};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::RunOptions;
use perihelion_runtime::{Job, RunReport, RunStatusView};
use perihelion_star::{GraphState, Request};

/// How long a run waits whose thread somebody else holds, such as a command line.
const CLAIMED_BY_OTHERS: TimeDelta = TimeDelta::milliseconds(500);

/// How long it is until a row that could not be written is tried again.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long another process that holds a run's thread has to end it, before the thread is taken from it.
const HOLDER_ANSWERS: Duration = Duration::from_secs(10);

/// How driving a run ended.
enum End {
    /// With this status, and why it failed.
    Settled(RunStatus, Option<Value>),
    /// This process is to end; another one continues.
    Left,
    /// Somebody else holds the thread; nothing was done.
    NotBegun,
}

impl End {
    fn broken(error: &Error) -> Self {
        Self::Settled(RunStatus::Error, Some(failure(class(error), &error.to_string())))
    }
}

impl Service {
    /// Drives a run that this process has begun, and those that wait behind it.
    pub(super) fn launch(&self, run: Run) {
        let service = self.driving_for(&run.tenant);
        self.0.tasks.spawn(async move {
            let mut next = Some(run);
            while let Some(run) = next.take() {
                let thread = run.thread;
                service.drive(run).await;
                if service.0.stop.is_cancelled() {
                    return;
                }
                let begin = Begin { owner: &service.0.owner, now: clock::now() };
                next = match service.kept().begin_next(thread, begin).await {
                    Ok(next) => next,
                    Err(error) => {
                        tracing::warn!(%error, "the next run of a thread could not be looked for");
                        None
                    }
                };
            }
        });
    }

    async fn drive(&self, run: Run) {
        let stop = self.0.stop.child_token();
        self.driven().insert(run.id, stop.clone());
        let end = self.perform(&run, &stop).await;
        let has_failed = end.is_err();
        let mut end = match end {
            Ok(end) => end,
            Err(Error::Runtime(error)) if error.is_claimed() => End::NotBegun,
            Err(error) => End::broken(&error),
        };
        self.driven().remove(&run.id);
        let asked = self.cancel_of(&run).await;
        if let (End::Left, Some(_), false) = (&end, asked, self.0.stop.is_cancelled()) {
            end = self.end_elsewhere(&run).await;
        }
        let has_begun = !matches!(end, End::NotBegun);
        if !has_begun && asked.is_some() {
            end = End::Settled(RunStatus::Interrupted, None);
        }
        if let End::Settled(status, _) = &end
            && stop.is_cancelled()
            && *status != RunStatus::Success
        {
            end = match asked {
                None if self.0.stop.is_cancelled() => End::Left,
                _ => End::Settled(RunStatus::Interrupted, None),
            };
        }
        if let (End::Settled(..), Some(Cancel::Rollback)) = (&end, asked) {
            self.roll_back(&run, has_begun).await;
        }
        self.settle(&run, end).await;
        self.0.ended.call(run.id, ());
        if has_failed {
            // It may have told nothing.
            self.runtime().bus().call(ThreadId(run.thread)).await;
        }
    }

    /// Ends a run whose thread another process holds, such as a worker that was quicker.
    async fn end_elsewhere(&self, run: &Run) -> End {
        let threads = self.runtime().threads();
        let thread = ThreadId(run.thread);
        match stops::end_elsewhere(self.kept(), &threads, thread, HOLDER_ANSWERS).await {
            Ok(()) => End::Settled(RunStatus::Interrupted, None),
            Err(error) => End::broken(&error),
        }
    }

    async fn cancel_of(&self, run: &Run) -> Option<Cancel> {
        self.kept().find_run(run.id).await.ok().flatten().and_then(|run| run.cancel)
    }

    /// Writes how a run ended, for as long as the database does not take it.
    async fn settle(&self, run: &Run, end: End) {
        loop {
            let written = match &end {
                End::Settled(status, error) => {
                    let kwargs = without_files(&run.kwargs);
                    let ended =
                        Ended { status: *status, error: error.clone(), kwargs: kwargs.as_ref() };
                    self.kept().end_run(run.id, ended, clock::now()).await.map(|_| ())
                }
                End::Left => self.kept().leave_run(run.id, &self.0.owner).await,
                End::NotBegun => {
                    let owner = &self.0.owner;
                    self.kept().put_back(run.id, owner, clock::now(), CLAIMED_BY_OTHERS).await
                }
            };
            match written {
                Err(error) if error.is_passing() && !self.0.stop.is_cancelled() => {
                    tracing::warn!(%error, "the end of a run could not be written; trying again");
                    clock::sleep(PATIENCE).await;
                }
                Err(error) => {
                    return tracing::error!(%error, run = %run.id, "the end of a run could not be written");
                }
                Ok(()) => break,
            }
        }
    }

    async fn perform(&self, run: &Run, stop: &CancellationToken) -> Result<End, Error> {
        let thread = ThreadId(run.thread);
        self.check_enabled(thread).await?;
        let order = Order::of(run)?;
        let runtime = self.runtime();
        let options = order.applied_to(RunOptions {
            cancel: stop.clone(),
            publish: Some(std::sync::Arc::clone(runtime.bus())),
            ..runtime.run_options()
        });
        let report = if run.attempt > 1 && self.has_begun(run, &order).await? {
            self.continue_run(thread, options).await?
        } else {
            self.begin(thread, &order, options).await?
        };
        self.note_asked(thread, report.status == RunStatusView::Interrupted).await;
        Ok(self.end_of(&report, stop).await)
    }

    /// Begins what was ordered.
    async fn begin(
        &self,
        thread: ThreadId,
        order: &Order,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        let runtime = self.runtime();
        if order.is_bound {
            self.check_user(thread, order.user.as_deref()).await?;
        }
        if let Some(at) = order.at {
            runtime.go_back(thread, at).await?;
        }
        let job = self.job(thread, order).await?;
        Ok(runtime.runs().perform(job, options).await?)
    }

    /// Returns what is to be done for an order, now that it is its turn.
    async fn job(&self, thread: ThreadId, order: &Order) -> Result<Job, Error> {
        Ok(match &order.asked {
            Asked::Turn(turn) => {
                let allowance = self.left_of_day().await?;
                Job::Turn { thread, request: Request { allowance, ..turn.request() } }
            }
            Asked::Resume(given) => {
                let view = self.runtime().threads().view(thread).await?;
                let is_paused = view.info.status == ThreadStatus::Interrupted;
                if is_paused && view.open.is_empty() {
                    // It asks nothing: whatever is sent, it continues.
                    return Ok(Job::Continue { thread });
                }
                let answers = answers::read(given, &view.open)?;
                Job::Answers { thread, by: order.by.clone(), answers }
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
    ) -> Result<RunReport, Error> {
        let runtime = self.runtime();
        let info = runtime.store().info(thread).await?;
        let is_under_way = matches!(info.status, ThreadStatus::Busy | ThreadStatus::Queued);
        if is_under_way || self.was_stopped(thread).await? {
            Ok(runtime.resume_or_rest(thread, options).await?)
        } else {
            Ok(runtime.at_rest(thread).await?)
        }
    }

    /// Returns whether a thread's last run was stopped rather than ended.
    async fn was_stopped(&self, thread: ThreadId) -> Result<bool, Error> {
        let runs = self.runtime().store().runs(thread).await?;
        Ok(runs.last().is_some_and(|run| run.status == checkpoint::RunStatus::Cancelled))
    }

    async fn end_of(&self, report: &RunReport, stop: &CancellationToken) -> End {
        match report.status {
            RunStatusView::Done | RunStatusView::Interrupted => {
                End::Settled(RunStatus::Success, None)
            }
            RunStatusView::Queued => End::Left,
            RunStatusView::Failed => {
                let text = report.error.clone().unwrap_or_else(|| "the run failed".into());
                let class = if stop.is_cancelled() { "UserInterrupt" } else { "RunFailed" };
                End::Settled(RunStatus::Error, Some(failure(class, &text)))
            }
        }
    }

    /// Puts a thread back to where it stood before a run that moved it, as far as that can be, and deletes the run.
    async fn roll_back(&self, run: &Run, has_begun: bool) {
        // One that was made for the run goes with it.
        if run.temporary {
            return;
        }
        let thread = ThreadId(run.thread);
        if has_begun {
            let back = self.runtime().go_back(thread, run.base_step.unwrap_or_default()).await;
            if let Err(error) = back {
                tracing::warn!(%error, %thread, "a run could not be rolled back");
            }
        }
        if let Err(error) = self.kept().delete_run(run.thread, run.id).await {
            tracing::warn!(%error, "a run that was rolled back could not be deleted");
        }
    }
}

/// Returns what was asked for without the bytes of images and files, which its thread keeps; `None` where there are none.
fn without_files(kwargs: &Value) -> Option<Value> {
    let mut kwargs = kwargs.clone();
    let turn = kwargs.pointer_mut("/order/asked/turn")?.as_object_mut()?;
    turn.remove("attachments").map(|_| kwargs)
}

fn failure(class: &str, message: &str) -> Value {
    json!({ "error": class, "message": message })
}

fn class(error: &Error) -> &'static str {
    match error {
        Error::Answer(_) | Error::Update(_) => "ValueError",
        Error::Runtime(error) if error.is_usage() => "ValueError",
        _ => "RuntimeError",
    }
}
