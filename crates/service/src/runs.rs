//! Accepts runs, and waits for their ends.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perihelion_people::Scope;
use serde_json::{Value, json};
use uuid::Uuid;

use super::kept::{Begin, Cancel, Multitask, NewDelivery, NewRun, Run, RunStatus, RunTarget};
use super::{Approvals, Asked, Error, Order, Result, Service, answers};
use async_trait::async_trait;
use perihelion_engine::checkpoint::ThreadStatus;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::ThreadState;
use perihelion_star::question::kind;
use std::sync::Arc;

/// How often a run that another process drives is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[derive(Clone, Debug)]
pub struct Accept {
    pub thread: ThreadId,
    pub assistant: Uuid,
    pub order: Order,
    /// The request, in the form for clients.
    pub shown: Value,
    pub metadata: Value,
    pub multitask: Multitask,
    /// Whether the thread goes with the run.
    pub temporary: bool,
    /// The earliest start; `None` means now.
    pub due_at: Option<DateTime<Utc>>,
    /// The messages to send at its end.
    pub deliveries: Vec<NewDelivery>,
}

impl Accept {
    /// Returns whether an answer comes with an order that changes the thread or its other runs.
    fn does_more_than_answer(&self) -> bool {
        let Order { at, along, pauses, .. } = &self.order;
        let stops_others = matches!(self.multitask, Multitask::Interrupt | Multitask::Rollback);
        stops_others || at.is_some() || along.is_some() || !pauses.is_empty()
    }
}

/// How often an answer is tried while the thread moves.
const ANSWER_TRIES: usize = 50;

impl Service {
    /// Keeps a run, and begins it when its thread is free.
    ///
    /// # Errors
    /// [`Error::Busy`] when the thread is at work and the run is not to wait, [`Error::UnknownThread`].
    pub async fn accept(&self, accept: Accept) -> Result<Run> {
        Ok(self.accept_as(Uuid::now_v7(), accept).await?.0)
    }

    /// Keeps a run as [`Service::accept`] does, and notes of its thread by which assistant of which graph it was run.
    ///
    /// # Errors
    /// As [`Service::accept`].
    pub async fn accept_of(&self, graph: &str, accept: Accept) -> Result<Run> {
        let is_answer = matches!(accept.order.asked, Asked::Resume(_));
        let (run, target) = self.accept_as(Uuid::now_v7(), accept).await?;
        let thread = ThreadId(run.thread);
        // Not before: a run that is refused changes nothing of its thread, and who decides a call of another user neither.
        if !target.is_noted(graph, run.assistant)
            && (!is_answer || self.user_to_change(thread, &target, None).await.is_ok())
        {
            self.note_assistant(thread, graph, run.assistant).await?;
        }
        Ok(run)
    }

    /// Keeps a run under an id that was chosen for it.
    pub(super) async fn accept_as(&self, id: Uuid, mut accept: Accept) -> Result<(Run, RunTarget)> {
        let target = self.target(accept.thread).await?;
        // Before anything is kept that this program could not begin.
        let graph = accept.order.asked.graph();
        let noted = self.graph_noted(&accept.metadata);
        self.fit(accept.thread, &target, graph, &noted.about().name).await?;
        if target.head == 0
            && noted.about().is_hosted
            && matches!(accept.order.asked, Asked::Continue)
        {
            // LangGraph refuses to begin without an input.
            let graph = noted.about().name.clone();
            accept.order.asked = Asked::Input { graph, input: Value::Null };
        }
        let decides = match &mut accept.order.asked {
            Asked::Resume(given) => {
                self.check_answer(accept.thread, given, accept.order.at.is_none()).await?
            }
            Asked::Turn(_) if accept.order.at.is_none() => {
                accept.order.clarifies = self.clarification_of(accept.thread, &target).await?;
                false
            }
            _ => false,
        };
        // Who decides a call changes nothing but what they were asked to permit.
        if !decides || accept.does_more_than_answer() {
            self.bind_to_user(&mut accept, &target).await?;
        }
        Ok((self.accept_bound(id, accept, &target).await?, target))
    }

    async fn bind_to_user(&self, accept: &mut Accept, target: &RunTarget) -> Result<()> {
        let named = accept.order.turn().and_then(|turn| turn.user.as_deref());
        let user = self.user_to_change(accept.thread, target, named).await?;
        if let Some(user) = user.as_ref().filter(|_| target.user.is_none()) {
            self.give(accept.thread, user).await?;
        }
        accept.order.is_bound = !self.who().may_act_as_users();
        if let Asked::Turn(turn) = &mut accept.order.asked {
            turn.user = user.clone();
        }
        accept.order.user = user;
        Ok(())
    }

    pub(super) async fn accept_bound(
        &self,
        id: Uuid,
        mut accept: Accept,
        target: &RunTarget,
    ) -> Result<Run> {
        self.check_owner(target, accept.order.user.as_deref()).await?;
        let now = clock::now();
        let thread = accept.thread.0;
        accept.order.by = Some(self.who().user.clone());
        accept.order.cannot_approve = !self.who().may(Scope::Approve);
        if let Asked::Turn(turn) = &mut accept.order.asked {
            let usual = self.runtime().settings().serve.approvals;
            turn.approvals.get_or_insert(if turn.interactive { Approvals::Wait } else { usual });
        }
        if self.begins_work(accept.thread, &accept.order).await? {
            self.check_room().await?;
        }
        self.make_way(accept.thread, accept.multitask).await?;
        let reported = self.deliveries_to_followers(&accept).await?;
        let kwargs = json!({ "order": accept.order, "shown": accept.shown });
        let only_at = if accept.order.answers() {
            self.answerable(accept.thread, &accept.order).await?
        } else {
            None
        };
        let mut new = NewRun {
            id,
            thread,
            assistant: accept.assistant,
            multitask: accept.multitask,
            kwargs,
            metadata: accept.metadata,
            temporary: accept.temporary,
            due_at: accept.due_at.unwrap_or(now),
            only_at,
        };
        // First, so that no run ends without its messages.
        for delivery in accept.deliveries.iter().chain(&reported) {
            self.kept().add_delivery(id, delivery, now).await?;
        }
        let claim = self.claim(id);
        let begin = Begin { owner: &self.parts.owner, now };
        let mut run = self.kept().add_run(&new, begin).await?;
        for _ in 0..ANSWER_TRIES {
            if run.is_some() || new.only_at.is_none() {
                break;
            }
            // Another process was quicker: with the same answer, or with one to another question.
            new.only_at = self.answerable(accept.thread, &accept.order).await?;
            run = self.kept().add_run(&new, begin).await?;
        }
        let run = run.ok_or(Error::Busy)?;
        if let Some(claim) = claim.filter(|_| run.owner.as_deref() == Some(&self.parts.owner)) {
            self.launch(claim, run.clone());
        }
        Ok(run)
    }

    /// Refuses work if the tenant has reached its limit of runs, or has spent its daily budget.
    pub(super) async fn check_room(&self) -> Result<()> {
        let settings = &self.runtime().settings().serve;
        if let Some(most) = settings.max_runs {
            let open = self.kept().count_open_runs(most).await?;
            if open >= most {
                return Err(Error::TooMuch(format!("{open} of {most} runs are running or queued")));
            }
        }
        self.check_day().await
    }

    /// Refuses an answer without an open question, and an answer to a request for approval by a caller who cannot
    /// decide it; returns whether it answers only such requests.
    async fn check_answer(
        &self,
        thread: ThreadId,
        given: &mut Value,
        is_to_newest: bool,
    ) -> Result<bool> {
        let view = self.runtime().threads().view(thread).await?;
        let is_at_rest = is_to_newest
            && view.info.status == ThreadStatus::Interrupted
            && self.kept().open_runs(thread.0).await?.is_empty();
        let answered = match answers::read(given, &view.open) {
            Err(error) if is_at_rest => return Err(error),
            Err(error) if is_to_newest && answers::unknown(given, &view.open).is_some() => {
                return Err(error);
            }
            // What it asks by then is seen when it is driven.
            read => read.unwrap_or_default(),
        };
        let decided = answers::approvals_in(&answered, &view.open);
        if decided > 0 {
            self.permit(Scope::Approve)?;
        }
        let decides = decided > 0 && decided == answered.len();
        if is_at_rest && !answered.is_empty() {
            *given = answers::named(given, &view.open)?;
            for (id, answer) in answered {
                self.runtime().check_answer(thread, id, answer).await?;
            }
        }
        Ok(decides)
    }

    /// Returns the clarification for which a thread waits, if it is the only question: then a message is its answer.
    async fn clarification_of(&self, thread: ThreadId, target: &RunTarget) -> Result<Option<Uuid>> {
        if target.status != ThreadStatus::Interrupted.as_str() {
            return Ok(None);
        }
        let open = self.runtime().runner().open_interrupts(thread).await?;
        Ok(match open.as_slice() {
            [one] if one.kind == kind::CLARIFICATION => Some(one.id.0),
            _ => None,
        })
    }

    /// Stops the thread's active run if another one replaces it.
    async fn make_way(&self, thread: ThreadId, how: Multitask) -> Result<()> {
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
    pub async fn run(&self, thread: ThreadId, run: Uuid) -> Result<Run> {
        self.kept().run(thread.0, run).await?.ok_or(Error::UnknownRun(run))
    }

    /// Waits for a run to end; `None` when it was deleted, or this process is to end.
    pub async fn ended(&self, thread: ThreadId, run: Uuid) -> Result<Option<Run>> {
        Ok(self.finished(thread, run).await?.map(|finished| finished.run))
    }

    /// Waits for a run to end as [`Service::ended`] does; of a run of this process that succeeded, the state comes with it.
    pub async fn finished(&self, thread: ThreadId, run: Uuid) -> Result<Option<Finished>> {
        let mut calls = self.parts.ended.wait_for(run);
        let is_over = |status: RunStatus| status.is_terminal();
        // A task of this process calls when it has driven the run.
        let mut will_be_called = self.is_driven(run);
        let mut is_called = false;
        loop {
            if !std::mem::take(&mut will_be_called) {
                // A run that ends from here on is not missed.
                calls.forget();
                if is_called || self.kept().run_status(thread.0, run).await?.is_none_or(is_over) {
                    let found = self.kept().run(thread.0, run).await?;
                    if found.as_ref().is_none_or(|run| is_over(run.status)) {
                        return Ok(found.map(|run| Finished { run, state: None }));
                    }
                }
            }
            is_called = tokio::select! {
                finished = calls.called() => match finished {
                    Some(finished) => return Ok(Some(Finished::clone(&finished))),
                    None => true,
                },
                () = clock::sleep(LOOK_EVERY) => false,
                () = self.parts.stop.cancelled() => return Ok(None),
            };
        }
    }
}

#[derive(Clone, Debug)]
pub struct Finished {
    pub run: Run,
    /// The state that it left without open questions, if it is known.
    pub state: Option<ThreadState>,
}

/// Selects the additional followers of a run.
#[async_trait]
pub trait Followers: Send + Sync {
    /// Returns the messages about a run that is about to be stored and begins no turn.
    async fn of_next(&self, service: &Service, next: &Accept) -> Result<Vec<NewDelivery>>;
}

impl Service {
    /// Notifies the followers that the first registered selector returns for each run.
    pub fn tell(&self, followers: Arc<dyn Followers>) {
        let _ = self.parts.followers.set(followers);
    }

    pub(super) async fn deliveries_to_followers(&self, next: &Accept) -> Result<Vec<NewDelivery>> {
        match self.parts.followers.get() {
            Some(followers) if !next.order.begins_turn() => followers.of_next(self, next).await,
            _ => Ok(Vec::new()),
        }
    }
}
