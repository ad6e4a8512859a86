//! Accepts runs, in whose name they are done, and waits for their ends.
//!
//! A thread always belongs to the user who created it or asked the first question in it. Memories about a user are
//! shown to runs of their threads, so only this user can run or change them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perihelion_people::Scope;
use serde_json::{Value, json};
use uuid::Uuid;

use super::kept::{Begin, Cancel, Multitask, NewDelivery, NewRun, Run, RunStatus};
use super::{Approvals, Asked, Error, Order, Result, Service, answers};
use async_trait::async_trait;
use perihelion_engine::checkpoint::{ThreadInfo, ThreadStatus};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
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
        self.accept_as(Uuid::now_v7(), accept).await
    }

    /// Keeps a run under an id that was chosen for it.
    pub(super) async fn accept_as(&self, id: Uuid, mut accept: Accept) -> Result<Run> {
        // Before anything is kept that this program could not begin.
        let graph = accept.order.asked.graph();
        let noted = self.graph_noted(&accept.metadata);
        let info = self.fit(accept.thread, graph, &noted.about().name).await?;
        if info.head == 0
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
                accept.order.clarifies = self.clarification_of(&info).await?;
                false
            }
            _ => false,
        };
        // Who decides a call changes nothing but what they were asked to permit.
        if !decides || accept.does_more_than_answer() {
            self.bind_to_user(&mut accept).await?;
        }
        self.accept_bound(id, accept).await
    }

    /// Decides in whose name a run is done.
    async fn bind_to_user(&self, accept: &mut Accept) -> Result<()> {
        let named = accept.order.turn().and_then(|turn| turn.user.as_deref());
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
    pub(super) async fn accept_bound(&self, id: Uuid, mut accept: Accept) -> Result<Run> {
        self.check_enabled(accept.thread).await?;
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
        // First, so that no run ends of which nobody would be told.
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
    async fn clarification_of(&self, info: &ThreadInfo) -> Result<Option<Uuid>> {
        if info.status != ThreadStatus::Interrupted {
            return Ok(None);
        }
        let open = self.runtime().runner().open_interrupts(info.id).await?;
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
                        return Ok(found);
                    }
                }
            }
            is_called = tokio::select! {
                () = calls.called() => true,
                () = clock::sleep(LOOK_EVERY) => false,
                () = self.parts.stop.cancelled() => return Ok(None),
            };
        }
    }
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

    /// Returns the messages about a run in addition to those of its request.
    pub(super) async fn deliveries_to_followers(&self, next: &Accept) -> Result<Vec<NewDelivery>> {
        match self.parts.followers.get() {
            Some(followers) if !next.order.begins_turn() => followers.of_next(self, next).await,
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the user who owns the thread, if there is one: as stored, or from a turn of the command line.
    async fn user_of(&self, thread: ThreadId) -> Result<Option<String>> {
        if let Some(user) = self.kept().thread_user(thread.0).await? {
            return Ok(Some(user));
        }
        let info = self.info(thread).await?;
        // Only the state of the supervisor graph names one.
        let Some(graph) = self.runtime().graph(&info.graph).ok().filter(|_| info.head > 0) else {
            return Ok(None);
        };
        Ok(graph.state(thread, None).await?.star().user.clone())
    }

    /// Decides on whose behalf a request changes a thread, if it names `named`.
    ///
    /// # Errors
    /// [`Error::OthersThread`]; [`Error::People`] if the caller names another user.
    pub async fn user_on(&self, thread: ThreadId, named: Option<&str>) -> Result<Option<String>> {
        let acting = self.who().acting_as(named)?;
        let may_any = self.who().may_act_as_users();
        if may_any && acting.is_none() {
            // It continues in the name that the thread has.
            return Ok(None);
        }
        match (self.user_of(thread).await?, acting) {
            (None, acting) => Ok(acting),
            (Some(of), Some(acting)) if of == acting => Ok(Some(of)),
            (Some(_), _) => Err(Error::OthersThread),
        }
    }

    /// Finds a thread for who is to change it.
    ///
    /// # Errors
    /// [`Error::UnknownThread`]; [`Error::OthersThread`] if it belongs to another user, whose threads the caller can
    /// only view.
    pub async fn info_to_change(&self, thread: ThreadId) -> Result<ThreadInfo> {
        let info = self.info(thread).await?;
        self.user_on(thread, None).await?;
        Ok(info)
    }

    /// Makes a user the permanent owner of a thread.
    pub(super) async fn give(&self, thread: ThreadId, user: &str) -> Result<()> {
        let owner = self.kept().give_thread(thread.0, user, clock::now()).await?;
        if owner.is_none_or(|owner| owner == user) { Ok(()) } else { Err(Error::OthersThread) }
    }

    /// Makes a copy of a thread the user's whose the thread is.
    pub(super) async fn give_copy(&self, from: ThreadId, copy: ThreadId) -> Result<()> {
        match self.user_of(from).await? {
            Some(user) => self.give(copy, &user).await,
            None => Ok(()),
        }
    }

    /// Refuses to continue with a thread whose user was disabled, no matter who asks for it.
    pub(super) async fn check_enabled(&self, thread: ThreadId) -> Result<()> {
        let Some(user) = self.kept().thread_user(thread.0).await? else { return Ok(()) };
        if self.people().is_disabled(self.tenant(), &user).await? {
            Err(Error::UserDisabled(user))
        } else {
            Ok(())
        }
    }

    /// Checks at the start of a run that its thread did not get another owner while it waited.
    pub(super) async fn check_user(&self, thread: ThreadId, user: Option<&str>) -> Result<()> {
        match self.user_of(thread).await? {
            Some(of) if Some(of.as_str()) != user => Err(Error::OthersThread),
            _ => Ok(()),
        }
    }
}
