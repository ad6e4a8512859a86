//! Resumes a thread in competition with workers: the faster process runs it, and the other one follows it to its
//! end, with the events that it would show.

use std::time::Duration;

use super::report::{RunStatusView, data_of, failure};
use super::threads::{LiveStatus, is_abandoned};
use super::{Answer, Error, RunReport, Runtime, ThreadView};
use futures::StreamExt as _;
use perihelion_engine::bus::{Bus, Subscription, ThreadEvent};
use perihelion_engine::checkpoint::{RunStatus, ThreadStatus};
use perihelion_engine::clock;
use perihelion_engine::graph::RunEvent;
use perihelion_engine::ids::{InterruptId, RunId, ThreadId};
use perihelion_engine::runner::{self, RunOptions};
use perihelion_star::GraphState;
use serde::Deserialize as _;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// How often a thread of another process is polled.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Steps that are searched for those of the last run.
const STEPS: u32 = 512;

impl Runtime {
    /// Resumes a thread as [`Runtime::resume`] does, or follows the process that runs it to its end.
    ///
    /// The listener in `options` receives the run from its beginning, as that process publishes it on the bus. When
    /// that process dies or hands the thread over, this one continues with it. If it is cancelled, it only stops
    /// following; the report then says that the run was left to other processes.
    ///
    /// # Errors
    /// As [`Runtime::resume`], except for a busy thread.
    pub async fn resume_or_follow(
        &self,
        thread: ThreadId,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        let mut followed = false;
        let mut live =
            options.events.clone().map(|listener| Live::new(self.bus(), thread, listener));
        loop {
            match self.resume(thread, options.clone()).await {
                Err(error) if error.is_claimed() => followed = true,
                Err(Error::Run(runner::Error::Finished { .. })) if followed => {
                    show_rest(&mut live).await;
                    return self.at_rest(thread).await;
                }
                other => return other,
            }
            loop {
                if options.cancel.is_cancelled() {
                    return Ok(RunReport {
                        status: RunStatusView::Queued,
                        ..self.at_rest(thread).await?
                    });
                }
                let info = self.store().info(thread).await?;
                let is_free = match info.status {
                    ThreadStatus::Queued => true,
                    // The clocks of two machines may differ; the database decides when it is claimed.
                    ThreadStatus::Busy => {
                        is_abandoned(&info) || info.lease_until.is_none_or(|t| t < clock::now())
                    }
                    _ => {
                        show_rest(&mut live).await;
                        return self.at_rest(thread).await;
                    }
                };
                if is_free {
                    break;
                }
                if let Some(live) = live.as_mut().filter(|live| live.from.is_none()) {
                    let run = self.store().runs(thread).await?.pop();
                    // Anyone who has just claimed the thread has yet to begin its run.
                    live.from =
                        run.filter(|run| run.status == RunStatus::Running).map(|run| run.id);
                }
                let showing = async {
                    match &mut live {
                        Some(live) if live.from.is_some() => live.show().await,
                        _ => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = options.cancel.cancelled() => {}
                    () = clock::sleep(LOOK_EVERY) => {}
                    () = showing => {}
                }
            }
            show_rest(&mut live).await;
            // Anyone who else saw this may be quicker; then the next claim is refused.
            clock::sleep(LOOK_EVERY / 4).await;
        }
    }

    /// Does the same as [`Runtime::resume_or_follow`], and reports a finished thread: the faster process may have
    /// reached the end between two polls.
    ///
    /// # Errors
    /// As [`Runtime::resume_or_follow`], except for a finished thread.
    pub async fn resume_or_rest(
        &self,
        thread: ThreadId,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        match self.resume_or_follow(thread, options).await {
            Err(Error::Run(runner::Error::Finished { .. })) => self.at_rest(thread).await,
            other => other,
        }
    }

    /// Records a person's answer, and resumes the thread or follows the worker that was quicker.
    pub async fn answer_and_continue(
        &self,
        thread: ThreadId,
        interrupt: Option<InterruptId>,
        answer: Answer,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        let runs = self.store().runs(thread).await?.len();
        self.answer(thread, interrupt, answer).await?;
        let info = self.store().info(thread).await?;
        if let Some(report) = self.woken(&info, options.clone()).await? {
            return Ok(report);
        }
        let is_busy = self.store().info(thread).await?.status == ThreadStatus::Busy;
        // At rest again: the answer's run was made by a worker, and it may have ended in any way.
        if !is_busy && self.store().runs(thread).await?.len() > runs {
            self.at_rest(thread).await
        } else {
            self.resume_or_rest(thread, options).await
        }
    }

    /// Reports on a thread's last run from its stored rows.
    pub async fn at_rest(&self, thread: ThreadId) -> Result<RunReport, Error> {
        let store = self.store().as_ref();
        let ThreadView { info, runs, open, .. } = ThreadView::read(store, thread).await?;
        let state = self.graph(&info.graph)?.state(thread, None).await?;
        let run = runs.last().map(|run| run.id);
        let steps = store.history(thread, None, STEPS).await?;
        let steps = steps.iter().take_while(|step| Some(step.run) == run).count() as u64;
        let status = match info.status {
            ThreadStatus::Idle => RunStatusView::Done,
            ThreadStatus::Interrupted => RunStatusView::Interrupted,
            ThreadStatus::Busy | ThreadStatus::Queued => RunStatusView::Queued,
            ThreadStatus::Failed if LiveStatus::of(&info) == LiveStatus::Stopped => {
                RunStatusView::Stopped
            }
            ThreadStatus::Failed | ThreadStatus::Parked => RunStatusView::Failed,
        };
        let run_id = run.map(|run| run.to_string()).unwrap_or_default();
        let state = state.star();
        let mut report = RunReport::of(thread, run_id, status, state);
        report.data = data_of(store, thread, state).await?;
        let is_done = status == RunStatusView::Done;
        let error = info.error.or_else(|| failure(state).filter(|_| is_done));
        let status = if is_done && error.is_some() { RunStatusView::Failed } else { status };
        let word = runs.last().and_then(|run| run.finish_reason.clone());
        let stored = word.and_then(|word| serde_json::from_value(word.into()).ok());
        let finish_reason = stored.or(report.finish_reason);
        Ok(RunReport { status, steps, interrupts: open, finish_reason, error, ..report })
    }
}

/// Shows the published events that were not shown yet; a process publishes all events before it gives back the thread.
async fn show_rest(live: &mut Option<Live>) {
    if let Some(live) = live {
        live.rest().await;
    }
}

/// Passes a thread's events on to a listener, each once, from the beginning of the run under way.
pub(super) struct Live {
    bus: Arc<dyn Bus>,
    thread: ThreadId,
    listener: Sender<RunEvent<GraphState>>,
    /// `None` without a subscription: before it begins, and after a failure until the next poll.
    events: Option<Subscription>,
    /// An event that was read and must be passed on.
    waiting: Option<ThreadEvent>,
    /// Id of the last event that was passed on or passed over.
    seen: u64,
    /// The first run whose events are shown, once it is known.
    from: Option<RunId>,
    is_shown: bool,
}

impl Live {
    pub(super) fn new(
        bus: &Arc<dyn Bus>,
        thread: ThreadId,
        listener: Sender<RunEvent<GraphState>>,
    ) -> Self {
        Self {
            bus: Arc::clone(bus),
            thread,
            listener,
            events: None,
            waiting: None,
            seen: 0,
            from: None,
            is_shown: false,
        }
    }

    /// Passes events on while they arrive; returns when a run has ended.
    ///
    /// It may be dropped at any moment: an event that was read and not passed on yet waits.
    pub(super) async fn show(&mut self) {
        loop {
            if self.waiting.is_none() {
                let bus = &self.bus;
                let thread = self.thread;
                let seen = self.seen;
                let events = self.events.get_or_insert_with(|| bus.subscribe(thread, seen));
                match events.next().await {
                    Some(Ok(events)) => self.waiting = Some(events),
                    // The thread's status is looked at all the same, and the next look subscribes again.
                    _ => {
                        self.events = None;
                        return std::future::pending().await;
                    }
                }
            }
            if self.pass_on().await {
                return;
            }
        }
    }

    /// Passes on the stored events that were not passed on yet.
    pub(super) async fn rest(&mut self) {
        self.pass_on().await;
        self.events = None;
        while let Ok(events) = self.bus.read(self.thread, self.seen).await {
            if events.is_empty() {
                return;
            }
            for one in events {
                self.waiting = Some(one);
                self.pass_on().await;
            }
        }
    }

    /// Passes on the event that waits; returns whether it was the end of a run.
    async fn pass_on(&mut self) -> bool {
        let Some(events) = &self.waiting else { return false };
        self.is_shown |= self.from == Some(events.run);
        let mut is_end = false;
        if self.is_shown {
            // Anyone who listened may have left.
            let permit = self.listener.reserve().await.ok();
            // One of a newer version's that this one does not know says nothing to it.
            let event = RunEvent::<GraphState>::deserialize(&events.event).ok();
            is_end = matches!(event, Some(RunEvent::RunEnded { .. }));
            if let Some((permit, event)) = permit.zip(event) {
                permit.send(event);
            }
        }
        self.seen = events.id;
        self.waiting = None;
        is_end
    }
}
