//! The background work of a process: heartbeats, stop requests, and a search for runs without a process.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::TimeDelta;
use uuid::Uuid;

use super::kept::Begin;
use super::{Result, Service};
use perihelion_engine::clock;
use perihelion_engine::runner::holder_is_dead;
use perihelion_runtime::{DEMO_TENANT, Documents};
use perihelion_settings::config::Age;

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Looks between two heartbeats, and between two warnings of one kind.
const BEAT_EVERY: u32 = 10;

/// Number of polls between deletions of old usage counts and expired rows: an hour.
const FORGET_EVERY: u32 = 7_200;

/// Looks between two for threads of one run: a minute.
const SWEEP_EVERY: u32 = 120;

/// How long a process may be silent before its runs are another one's.
const SILENT_FOR: TimeDelta = TimeDelta::seconds(30);

impl Service {
    /// Keeps the runs of the database going until the process is to end.
    pub async fn keep(&self) {
        let expire = async {
            if let Err(error) = self.expire_stale().await {
                tracing::warn!(%error, "could not check old approval requests");
            }
            self.parts.are_stale_expired.store(true, Ordering::Release);
        };
        tokio::join!(expire, self.keep_own(), self.keep_others());
    }

    /// Stores heartbeats and looks for stop requests, however long other work takes.
    async fn keep_own(&self) {
        let mut turn = 0_u32;
        loop {
            let beats = turn.is_multiple_of(BEAT_EVERY);
            warn_of(self.look_after_own(beats).await, beats, "could not look after the own runs");
            turn = turn.wrapping_add(1);
            tokio::select! {
                () = self.parts.stop.cancelled() => return,
                () = clock::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Begins what is due, takes over what is left, and deletes what is old.
    async fn keep_others(&self) {
        let mut turn = 0_u32;
        let mut looks = Looks::default();
        loop {
            if turn.is_multiple_of(FORGET_EVERY) {
                if let Err(error) = self.people().forget_taken(clock::now()).await {
                    tracing::debug!(%error, "could not delete old usage counts; trying again in an hour");
                }
                if let Err(error) = self.kept().forget_items(clock::now()).await {
                    tracing::debug!(%error, "could not delete expired items; trying again in an hour");
                }
                self.prune_documents();
                self.archive();
            }
            if turn.is_multiple_of(SWEEP_EVERY) {
                self.sweep();
            }
            self.look(&mut looks, turn.is_multiple_of(BEAT_EVERY)).await;
            turn = turn.wrapping_add(1);
            tokio::select! {
                () = self.parts.stop.cancelled() => return,
                () = clock::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Deletes documents that are older than the settings permit, in the background.
    fn prune_documents(&self) {
        let settings = self.runtime().settings().clone();
        let oldest = |age: Age| age.before(clock::now());
        let Some(before) = settings.documents.max_age.and_then(oldest) else { return };
        let stop = self.parts.stop.clone();
        self.parts.tasks.spawn(async move {
            let pruned = async {
                let documents = Documents::open(&settings).await?.stopping_at(stop);
                let pruned = documents.prune_all(before).await;
                documents.close().await;
                pruned
            };
            match pruned.await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "deleted documents older than documents.max_age"),
                Err(error) => {
                    tracing::warn!(%error, "could not delete old documents; trying again in an hour");
                }
            }
        });
    }

    /// Archives threads that are older than the settings permit, in the background, unless this process is at it.
    fn archive(&self) {
        if self.runtime().settings().archive.dir.is_none() {
            return;
        }
        let Ok(turn) = Arc::clone(&self.parts.archiving).try_lock_owned() else { return };
        let service = self.clone();
        self.parts.tasks.spawn(async move {
            let settings = service.runtime().settings();
            let threads = service.runtime().threads();
            match threads.archive(settings, settings.archive.after, &service.parts.stop).await {
                Ok(report) => {
                    for (thread, error) in report.failed {
                        tracing::warn!(%thread, %error, "could not archive a thread");
                    }
                    if report.archived > 0 {
                        tracing::info!(count = report.archived, "archived threads");
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "could not archive threads; trying again in an hour");
                }
            }
            drop(turn);
        });
    }

    async fn look_after_own(&self, beats: bool) -> Result<()> {
        let owner = self.parts.owner.as_str();
        if beats && !self.parts.driven.lock().is_empty() {
            self.kept().beat(owner, clock::now()).await?;
        }
        for (run, cancel) in self.kept().runs_of(owner).await? {
            if cancel.is_some() {
                self.stop_driving(run);
            }
            self.take_over(run, beats).await;
        }
        Ok(())
    }

    /// Does each kind of work that is due; a failure of one hinders no other.
    async fn look(&self, looks: &mut Looks, beats: bool) {
        let Looks { approvals, threads, crons, runs } = looks;
        warn_of(self.time_out(approvals).await, beats, "could not look for expired requests");
        warn_of(self.begin_waiting(threads, beats).await, beats, "could not look for due runs");
        warn_of(self.begin_due(crons).await, beats, "could not look for due cron jobs");
        warn_of(self.take_abandoned(runs, beats).await, beats, "could not look for lost runs");
    }

    async fn begin_waiting(&self, place: &mut Place, beats: bool) -> Result<()> {
        let waiting = self.kept().waiting_threads(clock::now(), PAGE, place.passed).await?;
        let count = waiting.len();
        let mut left = 0;
        for (thread, tenant) in waiting {
            if !self.drives(&tenant) {
                left += 1;
                continue;
            }
            // Such as a run that was sealed with a key that this process does not have: others are not kept waiting.
            if let Err(error) = self.driving_for(&tenant).begin_next(thread).await {
                left += 1;
                if beats {
                    tracing::warn!(%error, %thread, "could not start the next run of a thread");
                }
            }
        }
        place.move_on(count, left);
        Ok(())
    }

    async fn take_abandoned(&self, place: &mut Place, beats: bool) -> Result<()> {
        let owner = self.parts.owner.as_str();
        let mut gone = self.kept().other_owners(owner).await?;
        gone.retain(|other| holder_is_dead(other));
        let before = clock::now() - SILENT_FOR;
        let kept = self.kept();
        let abandoned = kept.abandoned_runs(owner, &gone, before, PAGE, place.passed).await?;
        let mut left = 0;
        for run in &abandoned {
            left += usize::from(!self.take_over(*run, beats).await);
        }
        place.move_on(abandoned.len(), left);
        Ok(())
    }

    /// Returns whether this process has the agents of a tenant: the demo has its own.
    pub(super) fn drives(&self, tenant: &str) -> bool {
        let own = &*self.runtime().runner().tenant;
        (tenant == DEMO_TENANT) == (own == DEMO_TENANT)
    }

    /// Takes over a run that no process drives; returns whether this process can.
    async fn take_over(&self, id: Uuid, beats: bool) -> bool {
        self.try_to_take_over(id).await.unwrap_or_else(|error| {
            if beats {
                tracing::warn!(%error, run = %id, "could not take a run over");
            }
            false
        })
    }

    /// Takes over a run without a process, or of one that is dead, silent, or this one without a task for it.
    async fn try_to_take_over(&self, id: Uuid) -> Result<bool> {
        let Some(claim) = self.claim(id) else { return Ok(true) };
        let Some(run) = self.kept().run_of_any_tenant(id).await? else { return Ok(true) };
        if !self.drives(&run.tenant) {
            return Ok(false);
        }
        let own = self.parts.owner.as_str();
        let is_lost = |owner: &str| owner == own || holder_is_dead(owner);
        let is_dead = run.owner.as_deref().is_none_or(is_lost);
        let silent_for = if is_dead { TimeDelta::zero() } else { SILENT_FOR };
        let begin = Begin { owner: own, now: clock::now() };
        if self.kept().take_over(&run, silent_for, begin).await?
            && let Some(run) = self.kept().run_of_any_tenant(id).await?
        {
            tracing::info!(run = %id, "resuming a run that no process drives");
            self.launch(claim, run);
        }
        Ok(true)
    }
}

/// Logs why a look failed, now and then.
fn warn_of(looked: Result<()>, beats: bool, what: &str) {
    if let Err(error) = looked
        && beats
    {
        tracing::warn!(%error, "{what}; trying again");
    }
}

/// Rows of one look.
pub(super) const PAGE: u32 = 64;

/// The places at which the next look reads.
#[derive(Default)]
pub(super) struct Looks {
    pub approvals: Place,
    pub threads: Place,
    pub crons: Place,
    pub runs: Place,
}

/// A place in a list of rows: those that this process cannot take hide no later ones.
#[derive(Default)]
pub(super) struct Place {
    /// The number of rows before it.
    pub passed: u32,
}

impl Place {
    /// Moves behind a page of which `left` rows were not taken; after the last page, or when all were taken, to the beginning.
    pub(super) fn move_on(&mut self, page: usize, left: usize) {
        let is_full = page >= PAGE as usize;
        self.passed = if is_full && left > 0 { self.passed + left as u32 } else { 0 };
    }
}
