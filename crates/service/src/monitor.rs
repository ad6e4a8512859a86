//! What a process does beside its runs: it says that it lives, hears who is to be stopped, and looks for runs that
//! nobody drives.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::TimeDelta;

use super::kept::{Begin, Run};
use super::{Error, Service};
use perihelion_engine::clock;
use perihelion_engine::runner::holder_is_dead;
use perihelion_runtime::{DEMO_TENANT, Documents};
use perihelion_settings::config::Age;

/// How often runs are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Looks between two signs of life.
const BEAT_EVERY: u32 = 10;

/// Looks after which what runs took long ago, and what has expired, is forgotten: an hour.
const FORGET_EVERY: u32 = 7_200;

/// Looks between two for threads of one run: a minute.
const SWEEP_EVERY: u32 = 120;

/// How long a process may be silent before its runs are another one's.
const SILENT_FOR: TimeDelta = TimeDelta::seconds(30);

/// Threads or runs of one look.
const PAGE: u32 = 64;

impl Service {
    /// Keeps the runs of the database going until the process is to end.
    pub async fn keep(&self) {
        let mut turn = 0_u32;
        if let Err(error) = self.expire_stale().await {
            tracing::warn!(%error, "could not check old approval requests");
        }
        self.parts.are_stale_expired.store(true, Ordering::Release);
        loop {
            if turn.is_multiple_of(FORGET_EVERY) {
                if let Err(error) = self.people().forget_taken(clock::now()).await {
                    tracing::debug!(%error, "could not delete old usage counts; trying again in an hour");
                }
                if let Err(error) = self.kept().forget_items(clock::now()).await {
                    tracing::debug!(%error, "could not delete expired items; trying again in an hour");
                }
                self.prune_documents();
            }
            if turn.is_multiple_of(SWEEP_EVERY) {
                self.sweep();
            }
            if let Err(error) = self.look(turn.is_multiple_of(BEAT_EVERY)).await {
                tracing::debug!(%error, "could not look for runs; trying again");
            }
            turn = turn.wrapping_add(1);
            tokio::select! {
                () = self.parts.stop.cancelled() => return,
                () = clock::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Deletes documents that are older than the settings permit, beside everything else.
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

    async fn look(&self, beats: bool) -> Result<(), Error> {
        let owner = self.parts.owner.as_str();
        let now = clock::now();
        if !self.driven().is_empty() {
            if beats {
                self.kept().beat(owner, now).await?;
            }
            for (run, _) in self.kept().to_cancel(owner).await? {
                self.stop_driving(run);
            }
        }
        self.time_out().await?;
        for (thread, tenant) in self.kept().waiting_threads(now, PAGE).await? {
            if !self.drives(&tenant) {
                continue;
            }
            let begin = Begin { owner, now: clock::now() };
            match self.kept().for_tenant(&tenant).begin_next(thread, begin).await {
                Ok(run) => run.into_iter().for_each(|run| self.launch(run)),
                // Such as a run that was sealed with a key that this process does not have: others are not kept waiting.
                Err(error) if beats => {
                    tracing::warn!(%error, %thread, "could not start the next run of a thread");
                }
                Err(_) => {}
            }
        }
        if let Err(error) = self.begin_due().await {
            tracing::warn!(%error, "could not look for due cron jobs; trying again");
        }
        self.take_over_abandoned(beats).await
    }

    /// Takes over the runs of processes that are known to be gone, or have been silent for long.
    async fn take_over_abandoned(&self, beats: bool) -> Result<(), Error> {
        let owner = self.parts.owner.as_str();
        let mut gone = self.kept().other_owners(owner).await?;
        gone.retain(|other| holder_is_dead(other));
        let before = clock::now() - SILENT_FOR;
        for id in self.kept().abandoned_runs(owner, &gone, before, PAGE).await? {
            match self.kept().run_of_any_tenant(id).await {
                Ok(Some(run)) if self.drives(&run.tenant) => self.take_over(run).await?,
                Ok(_) => {}
                Err(error) if beats => {
                    tracing::warn!(%error, run = %id, "could not take a run over")
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Returns whether this process has the agents of a tenant: those of the demo are its own.
    pub(super) fn drives(&self, tenant: &str) -> bool {
        let own = self.runtime().runner().tenant();
        (tenant == DEMO_TENANT) == (own == DEMO_TENANT)
    }

    /// Takes a run over, unless another process was quicker or its own is heard of again.
    async fn take_over(&self, run: Run) -> Result<(), Error> {
        let is_dead = run.owner.as_deref().is_none_or(holder_is_dead);
        let silent_for = if is_dead { TimeDelta::zero() } else { SILENT_FOR };
        let begin = Begin { owner: &self.parts.owner, now: clock::now() };
        if !self.kept().take_over(&run, silent_for, begin).await? {
            return Ok(());
        }
        if let Some(taken) = self.kept().run_of_any_tenant(run.id).await? {
            tracing::info!(run = %run.id, "resuming a run of another process");
            self.launch(taken);
        }
        Ok(())
    }
}
