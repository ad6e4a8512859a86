//! Accepts runs, and waits for their ends.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perihelion_people::Scope;
use serde_json::{Value, json};
use uuid::Uuid;

use super::kept::{Begin, Cancel, Multitask, NewDelivery, NewRun, Run};
use super::{Approvals, Asked, Error, Order, Service, answers};
use perihelion_engine::checkpoint::ThreadStatus;
use perihelion_engine::clock;
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_star::GRAPH;
use perihelion_star::question::kind;

/// How often a run that another process drives is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A run to be accepted.
#[derive(Clone, Debug)]
pub struct Accept {
    pub thread: ThreadId,
    pub assistant: Uuid,
    pub order: Order,
    /// What was asked for, as clients are shown it.
    pub shown: Value,
    pub metadata: Value,
    pub multitask: Multitask,
    /// Whether the thread goes with the run.
    pub temporary: bool,
    /// When it may begin; none: now.
    pub due_at: Option<DateTime<Utc>>,
    /// What is sent when it has ended.
    pub deliveries: Vec<NewDelivery>,
}

impl Service {
    /// Keeps a run, and begins it when its thread is free.
    ///
    /// # Errors
    /// [`Error::Busy`] when the thread is at work and the run is not to wait, [`Error::UnknownThread`].
    pub async fn accept(&self, accept: Accept) -> Result<Run, Error> {
        self.accept_as(Uuid::now_v7(), accept).await
    }

    /// Keeps a run under an id that was chosen for it.
    pub(super) async fn accept_as(&self, id: Uuid, mut accept: Accept) -> Result<Run, Error> {
        if let Asked::Input { graph, .. } = &accept.order.asked {
            self.fit(accept.thread, graph).await?;
        }
        let decides = match &accept.order.asked {
            Asked::Resume(given) => {
                self.check_answer(accept.thread, given, accept.order.at.is_none()).await?
            }
            Asked::Turn(_) if accept.order.at.is_none() => {
                accept.order.clarifies = self.clarification_of(accept.thread).await?;
                false
            }
            _ => false,
        };
        // Who decides a call changes nothing but what they were asked to permit.
        if !decides {
            self.bind_to_user(&mut accept).await?;
        }
        self.accept_bound(id, accept).await
    }

    /// Decides in whose name a run is done.
    async fn bind_to_user(&self, accept: &mut Accept) -> Result<(), Error> {
        let named = match &accept.order.asked {
            Asked::Turn(turn) => turn.user.as_deref(),
            _ => None,
        };
        let user = self.user_on(accept.thread, named).await?;
        if let Some(user) = &user {
            self.give(accept.thread, user).await?;
        }
        accept.order.is_bound = !self.who().may_act_as_users();
        if let Asked::Turn(turn) = &mut accept.order.asked {
            turn.user = user.clone();
        }
        accept.order.user = user;
        Ok(())
    }

    /// Keeps a run whose user is decided.
    pub(super) async fn accept_bound(&self, id: Uuid, mut accept: Accept) -> Result<Run, Error> {
        self.check_enabled(accept.thread).await?;
        let now = clock::now();
        let thread = accept.thread.0;
        accept.order.by = Some(self.who().user.clone());
        if let Asked::Turn(turn) = &mut accept.order.asked {
            let usual = if turn.interactive {
                Approvals::Wait
            } else {
                self.runtime().settings().serve.approvals
            };
            turn.approvals.get_or_insert(usual);
        }
        if accept.order.asked.is_turn() {
            self.check_room().await?;
        }
        self.make_way(accept.thread, accept.multitask).await?;
        let reported = self.deliveries_to_followers(&accept).await?;
        let kwargs = json!({ "order": accept.order, "shown": accept.shown });
        let new = NewRun {
            id,
            thread,
            assistant: accept.assistant,
            multitask: accept.multitask,
            kwargs,
            metadata: accept.metadata,
            temporary: accept.temporary,
            due_at: accept.due_at.unwrap_or(now),
        };
        // First, so that no run ends of which nobody would be told.
        for delivery in accept.deliveries.iter().chain(&reported) {
            self.kept().add_delivery(id, delivery, now).await?;
        }
        let begin = Begin { owner: &self.parts.owner, now };
        let run = self.kept().add_run(&new, begin).await?.ok_or(Error::Busy)?;
        if run.owner.as_deref() == Some(&self.parts.owner) {
            self.launch(run.clone());
        }
        Ok(run)
    }

    /// Refuses a turn where the tenant has as many runs as it may have, or has spent what it may spend in a day.
    pub(super) async fn check_room(&self) -> Result<(), Error> {
        let settings = &self.runtime().settings().serve;
        if let Some(most) = settings.max_runs {
            let open = self.kept().count_open_runs(most).await?;
            if open >= most {
                return Err(Error::TooMuch(format!("{open} of {most} runs are running or queued")));
            }
        }
        self.check_day().await
    }

    /// Refuses an answer that fits nothing that a thread at rest asks, and one to a request for approval by somebody who
    /// may not decide it; returns whether it answers nothing else.
    async fn check_answer(
        &self,
        thread: ThreadId,
        given: &Value,
        is_to_newest: bool,
    ) -> Result<bool, Error> {
        let view = self.runtime().threads().view(thread).await?;
        let is_at_rest = is_to_newest
            && view.info.status == ThreadStatus::Interrupted
            && self.kept().open_runs(thread.0).await?.is_empty();
        let answered = match answers::read(given, &view.open) {
            Err(error) if is_at_rest => return Err(error),
            // What it asks by then is seen when it is driven.
            read => read.unwrap_or_default(),
        };
        let is_approval = |id: &InterruptId| {
            view.open.iter().any(|one| one.kind == kind::APPROVAL && one.id == id.to_string())
        };
        let decided = answered.iter().filter(|(id, _)| is_approval(id)).count();
        if decided > 0 {
            self.permit(Scope::Approve)?;
        }
        let decides = decided > 0 && decided == answered.len();
        if is_at_rest {
            for (id, answer) in answered {
                self.runtime().check_answer(thread, id, answer).await?;
            }
        }
        Ok(decides)
    }

    /// Returns the clarification that a thread waits for, and for nothing else: a message is its answer.
    async fn clarification_of(&self, thread: ThreadId) -> Result<Option<Uuid>, Error> {
        let info = self.runtime().store().info(thread).await?;
        if info.graph != GRAPH {
            self.fit(thread, GRAPH).await?;
        }
        if info.status != ThreadStatus::Interrupted {
            return Ok(None);
        }
        let open = self.runtime().runner().open_interrupts(thread).await?;
        Ok(match open.as_slice() {
            [one] if one.kind == kind::CLARIFICATION => Some(one.id.0),
            _ => None,
        })
    }

    /// Stops what a thread does where another run is to begin in its place.
    async fn make_way(&self, thread: ThreadId, how: Multitask) -> Result<(), Error> {
        let cancel = match how {
            // The statement that keeps the run refuses it where the thread is not free.
            Multitask::Enqueue | Multitask::Reject => return Ok(()),
            Multitask::Rollback => Cancel::Rollback,
            Multitask::Interrupt => Cancel::Interrupt,
        };
        for run in self.kept().open_runs(thread.0).await? {
            self.cancel(&run, cancel).await?;
        }
        Ok(())
    }

    /// Returns a run.
    ///
    /// # Errors
    /// [`Error::UnknownRun`].
    pub async fn run(&self, thread: ThreadId, run: Uuid) -> Result<Run, Error> {
        self.kept().run(thread.0, run).await?.ok_or(Error::UnknownRun(run))
    }

    /// Waits for a run to end; `None` when it was deleted, or this process is to end.
    pub async fn ended(&self, thread: ThreadId, run: Uuid) -> Result<Option<Run>, Error> {
        let mut calls = self.parts.ended.wait_for(run);
        loop {
            // A run that ends from here on is not missed.
            calls.forget();
            match self.kept().run_status(thread.0, run).await? {
                Some(status) if !status.is_terminal() => {}
                _ => return Ok(self.kept().run(thread.0, run).await?),
            }
            tokio::select! {
                () = calls.called() => {}
                () = clock::sleep(LOOK_EVERY) => {}
                () = self.parts.stop.cancelled() => return Ok(None),
            }
        }
    }
}
