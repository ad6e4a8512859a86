//! Takes a thread to run it, and gives it back.

use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Span;

use super::lease::{self, LeaseGuard, holder_is_dead};
use super::outcome::{Durability, Error, Result, RunOutcome, RunResult};
use super::run::Runner;
use super::writer::Writer;
use crate::checkpoint::{
    Begun, Claim, Error as StoreError, EventPosition, Fence, Restored, RunEnd, RunRow, RunStatus,
    ThreadInfo, ThreadStatus, restore,
};
use crate::clock::Clock;
use crate::failpoint::{Point, wrap};
use crate::graph::{EndStatus, State};
use crate::ids::{RunId, ThreadId};
use crate::observer::report;

/// A claimed thread, ready to be driven; dropping it lets the next one take the thread at once.
pub(super) struct ClaimedThread<S: State> {
    pub restored: Restored<S>,
    /// The thread's status before the claim.
    pub was: ThreadStatus,
    /// It was claimed from the process that held it when it was read, at this time or later.
    from_holder: Option<DateTime<Utc>>,
    pub run: RunId,
    /// How far the thread's log of events reached.
    pub events: EventPosition,
    /// The store's clock.
    pub clock: Clock,
    /// Stops this run alone: by its caller, its deadline, or the loss of the lease.
    pub stop: CancellationToken,
    /// The live span of the run, once it has one.
    pub span: Arc<OnceLock<Span>>,
    _renewal: AbortOnDropHandle<()>,
    _guard: LeaseGuard,
}

impl<S: State> Runner<S> {
    /// Reads a thread after checking that it is one of this graph's.
    pub(super) async fn read(&self, thread: ThreadId) -> Result<Restored<S>> {
        match restore::<S>(self.store().as_ref(), thread, None).await {
            Ok(read) => self.check_own(&read.info).map(|()| read),
            // The state of another graph may be unreadable as one of this.
            Err(error) => self.own(thread).await.and(Err(error.into())),
        }
    }

    /// Returns the row of a thread, which must be one of this graph's.
    pub(super) async fn own(&self, thread: ThreadId) -> Result<ThreadInfo> {
        let info = self.store().info(thread).await?;
        self.check_own(&info).map(|()| info)
    }

    fn check_own(&self, info: &ThreadInfo) -> Result<()> {
        let wanted = self.graph().name().to_owned();
        let found = info.graph.clone();
        if found == wanted {
            Ok(())
        } else {
            Err(Error::WrongGraph { thread: info.id, found, wanted })
        }
    }

    /// Claims the lease of a thread that was read, at once if its last holder is known to be dead, reads it again if it has
    /// changed, and starts a run.
    ///
    /// Reading comes first: a thread that cannot be read is left as it is.
    pub(super) async fn claim(
        &self,
        read: Restored<S>,
        cancel: &CancellationToken,
    ) -> Result<ClaimedThread<S>> {
        let guard = LeaseGuard::new(&self.process);
        let thread = read.info.id;
        let begun = match self.begin_run(&guard, thread, None).await {
            Err(refused @ StoreError::Busy { .. }) => {
                let seen = self.store().info(thread).await?;
                if !seen.owner.as_deref().is_some_and(holder_is_dead) {
                    return Err(refused.into());
                }
                self.begin_run(&guard, thread, Some(&seen)).await?
            }
            begun => begun?,
        };
        self.claimed(read, begun, guard, cancel).await
    }

    /// Claims the lease of a thread that was read, unless another process claimed it since, and starts a run.
    pub(super) async fn claim_as_read(
        &self,
        read: Restored<S>,
        cancel: &CancellationToken,
    ) -> Result<ClaimedThread<S>> {
        let guard = LeaseGuard::new(&self.process);
        let begun = self.begin_run(&guard, read.info.id, Some(&read.info)).await?;
        self.claimed(read, begun, guard, cancel).await
    }

    /// Claims a thread and starts a run, unless another process claimed it since it was `seen`.
    ///
    /// A holder that this machine knows to be dead stays dead. Whether a lease has run out, only the database says.
    async fn begin_run(
        &self,
        guard: &LeaseGuard,
        thread: ThreadId,
        seen: Option<&ThreadInfo>,
    ) -> Result<Begun, StoreError> {
        let holder = seen.and_then(|seen| seen.owner.as_deref());
        let force = holder.is_some_and(holder_is_dead);
        if force {
            tracing::info!(%thread, ?holder, "taking the thread over from a dead process");
        }
        let point = if force { Point::Takeover } else { Point::Claim };
        let claim = Claim::new(thread, guard.owner(), self.lease);
        let claim = Claim { seen: seen.map(|seen| seen.fence), force, ..claim };
        let begun = self.store().claim_and_begin(claim, self.exports_traces);
        wrap(point, wrap(Point::RunBegin, begun)).await
    }

    async fn claimed(
        &self,
        read: Restored<S>,
        Begun { info, run, events }: Begun,
        guard: LeaseGuard,
        cancel: &CancellationToken,
    ) -> Result<ClaimedThread<S>> {
        let store = self.store();
        let before = &read.info;
        let thread = before.id;
        let was = before.status;
        let is_from_holder = before.owner.is_some() && before.fence + 1 == info.fence;
        let from_holder = is_from_holder.then_some(before.updated_at);
        if before.owner.is_some() {
            report(|observer| observer.lease_taken_over());
        }
        let stop = cancel.child_token();
        let span = Arc::new(OnceLock::new());
        let kept = Arc::clone(store);
        let seen = Arc::clone(&span);
        let renewal = lease::keep(kept, Fence::from(&info), self.lease, stop.clone(), seen);
        let is_unmoved =
            before.owner.is_none() && before.fence + 1 == info.fence && before.head == info.head;
        let mut restored =
            if is_unmoved { read } else { restore::<S>(store.as_ref(), thread, None).await? };
        restored.info = info;
        // Its run is dated like all that happens in it; time limits count from there.
        let clock = store.clock(restored.info.updated_at);
        Ok(ClaimedThread {
            restored,
            was,
            from_holder,
            run,
            events,
            clock,
            stop,
            span,
            _renewal: renewal,
            _guard: guard,
        })
    }

    pub(super) fn writer(&self, claimed: &ClaimedThread<S>, durability: Durability) -> Writer {
        Writer::new(Arc::clone(self.store()), &claimed.restored, claimed.run, durability)
    }

    pub(super) async fn release(&self, claimed: &ClaimedThread<S>, end: RunEnd<'_>) -> Result<()> {
        let fence = Fence::from(&claimed.restored.info);
        let ended = self.store().end_run(fence, claimed.run, end);
        Ok(wrap(Point::RunEnd, ended).await?)
    }

    /// Refuses an input for a thread that has work left, and gives it back.
    ///
    /// # Errors
    /// [`Error::Unfinished`].
    pub(super) async fn refuse_unfinished(
        &self,
        claimed: ClaimedThread<S>,
    ) -> Result<ClaimedThread<S>> {
        if claimed.restored.frontier.tasks.is_empty() {
            return Ok(claimed);
        }
        let thread = claimed.restored.info.id;
        let status = self.release_unchanged(&claimed).await?.as_str();
        Err(Error::Unfinished { thread, status })
    }

    /// Gives a thread back as its last run left it, because this run has nothing to do on it.
    pub(super) async fn release_unchanged(
        &self,
        claimed: &ClaimedThread<S>,
    ) -> Result<ThreadStatus> {
        let Restored { info, frontier, .. } = &claimed.restored;
        let runs = self.store().runs(info.id).await?;
        let last = runs.iter().rev().find(|run| run.id != claimed.run).map(|run| run.status);
        let ended = last.filter(|status| *status != RunStatus::Running);
        let status = if frontier.tasks.is_empty() {
            ThreadStatus::Idle
        } else if ended == Some(RunStatus::Queued) {
            ThreadStatus::Queued
        } else if ended == Some(RunStatus::Interrupted)
            || !self.open_interrupts(info.id).await?.is_empty()
        {
            ThreadStatus::Interrupted
        } else {
            ThreadStatus::Failed
        };
        // The claim removed the error that was there.
        let unfinished = "its work is not finished; resume it to continue";
        let error = (status == ThreadStatus::Failed).then_some(unfinished);
        let end = RunEnd::new(ended.unwrap_or(RunStatus::Cancelled), status);
        self.release(claimed, RunEnd { error, ..end }).await?;
        Ok(status)
    }

    /// Gives a thread back whose input or edit could not be written.
    pub(super) async fn break_off(&self, claimed: &ClaimedThread<S>, error: Error) -> Error {
        let left = match self.broken(claimed, &error, false).await {
            Broken::AtEnd(_) => (RunStatus::Done, ThreadStatus::Idle),
            Broken::Left(run, thread) => (run, thread),
        };
        self.give_back(claimed, error, left).await
    }

    /// Gives back a thread whose run failed in the store, if the store still responds.
    pub(super) async fn give_back(
        &self,
        claimed: &ClaimedThread<S>,
        error: Error,
        (run, thread): (RunStatus, ThreadStatus),
    ) -> Error {
        if matches!(error, Error::Store(StoreError::Fenced { .. })) {
            return error;
        }
        let text = error.to_string();
        self.put_back(claimed, RunEnd { error: Some(&text), ..RunEnd::new(run, thread) }).await;
        error
    }

    async fn put_back(&self, claimed: &ClaimedThread<S>, end: RunEnd<'_>) {
        if let Err(second) = self.release(claimed, end).await {
            tracing::debug!(%second, "the thread could not be given back; its lease will run out");
        }
    }
}

pub(super) enum Broken<S: State> {
    /// Every step of it is committed: it is done, although the reply to its last commit was lost.
    AtEnd(RunOutcome<S>),
    /// With these statuses of the run and the thread.
    Left(RunStatus, ThreadStatus),
}

impl<S: State> Runner<S> {
    /// Gives back a thread without tasks, because the process of the last run died before its input was stored.
    pub(super) async fn refuse_unasked(&self, claimed: &ClaimedThread<S>) -> Result<()> {
        let restored = &claimed.restored;
        if !restored.frontier.tasks.is_empty() {
            return Ok(());
        }
        let store = self.store();
        let thread = restored.info.id;
        let newest = store.history(thread, None, 1).await?.pop().map(|step| step.run);
        let runs = store.runs(thread).await?;
        let writer = runs.iter().find(|run| newest == Some(run.id));
        let wrote = writer.map(|run| run.status);
        // Otherwise another process finished the thread since it was read.
        let last = writer.map_or(0, |run| run.number);
        let has_ended = |since| writer.is_some_and(|run| run.ended_at > Some(since));
        let is_lost = claimed.from_holder.is_some_and(|since| !has_ended(since))
            || runs.iter().any(|run| run.number > last && run.id != claimed.run);
        let is_end_missing = match wrote {
            Some(RunStatus::Failed) => claimed.was == ThreadStatus::Failed,
            Some(status) => status != RunStatus::Done,
            None => false,
        };
        if is_end_missing || !is_lost {
            return Ok(());
        }
        let error = Error::NeverAsked { thread };
        // After a whole turn the process that died may as well have come to continue, so the turn stays what it was.
        let info = &restored.info;
        let text = if info.head == 0 { Some(error.to_string()) } else { info.error.clone() };
        let end = RunEnd::new(RunStatus::Cancelled, ThreadStatus::Idle);
        self.put_back(claimed, RunEnd { error: text.as_deref(), ..end }).await;
        Err(error)
    }

    /// Refuses to resume a thread if the last runs ended with the death of their process and without a commit.
    ///
    /// The cause of those deaths (memory, a crash in a library) can end this process too, and the next one.
    pub(super) async fn refuse_crash_loop(
        &self,
        claimed: &ClaimedThread<S>,
        most: u32,
    ) -> Result<()> {
        // Without a node to run only the end of the run is missing, which cannot crash a process.
        if claimed.was != ThreadStatus::Busy || claimed.restored.frontier.tasks.is_empty() {
            return Ok(());
        }
        let store = self.store();
        let thread = claimed.restored.info.id;
        let newest = store.history(thread, None, 1).await?;
        let newest = newest.first().map(|step| step.run);
        let runs = store.runs(thread).await?;
        let died = |run: &&RunRow| run.status == RunStatus::Running && newest != Some(run.id);
        let before = runs.iter().rev().skip_while(|run| run.id == claimed.run);
        let crashes = u32::try_from(before.take_while(died).count()).unwrap_or(u32::MAX);
        if crashes >= most { Err(Error::CrashLoop { thread, crashes }) } else { Ok(()) }
    }

    /// Reads how a run that broke leaves its thread.
    ///
    /// An unavailable database fails no thread: the run is broken off, and a worker continues it if `hands_over` is
    /// set. A thread whose input was not stored is at rest, as before.
    pub(super) async fn broken(
        &self,
        claimed: &ClaimedThread<S>,
        error: &Error,
        hands_over: bool,
    ) -> Broken<S> {
        let of_store = match error {
            Error::Store(error) => Some(error),
            _ => None,
        };
        let is_passing = of_store.is_some_and(StoreError::is_passing);
        let run = if is_passing { RunStatus::Cancelled } else { RunStatus::Failed };
        let before = &claimed.restored;
        let thread = before.info.id;
        match restore::<S>(self.store().as_ref(), thread, None).await {
            Ok(now) if !now.frontier.tasks.is_empty() => {}
            Ok(now) if now.seq == before.seq => return Broken::Left(run, ThreadStatus::Idle),
            Ok(now) if of_store.is_some() => {
                let Restored { info, state, seq: head, .. } = now;
                let steps = head - before.seq;
                let result = RunResult::Done;
                let run = claimed.run;
                let tenant = info.tenant.into();
                let ended = RunOutcome { thread, tenant, run, result, state, head, steps };
                return Broken::AtEnd(ended);
            }
            _ => {}
        }
        if is_passing && hands_over {
            Broken::Left(RunStatus::Queued, ThreadStatus::Queued)
        } else {
            Broken::Left(run, ThreadStatus::Failed)
        }
    }
}

pub(super) fn end_status(run: RunStatus) -> EndStatus {
    match run {
        RunStatus::Done => EndStatus::Done,
        RunStatus::Interrupted => EndStatus::Interrupted,
        RunStatus::Queued => EndStatus::Queued,
        RunStatus::Cancelled => EndStatus::Cancelled,
        // None ends while it runs.
        RunStatus::Failed | RunStatus::Running => EndStatus::Failed,
    }
}
