//! The status of threads, and lists of threads by status.

use super::{Threads, is_abandoned};
use crate::Error;
use perihelion_engine::checkpoint::{ThreadFilter, ThreadInfo, ThreadStatus};
use perihelion_engine::runner::STOPPED;

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LiveStatus {
    New,
    /// Its last run ended with an answer.
    Done,
    /// It is left to the workers.
    Queued,
    Busy,
    Interrupted,
    /// Its last run failed, whether there is something to continue with or not.
    Failed,
    /// Its last run was stopped, and can continue.
    Stopped,
    /// A node that is next is not there.
    Parked,
    /// Its process died in the middle of a run.
    Crashed,
}

impl LiveStatus {
    /// Returns the status of a thread. A thread without a living process is not busy.
    pub fn of(info: &ThreadInfo) -> Self {
        let shared = info.forked_from.map_or(0, |(_, step)| step);
        if is_abandoned(info) {
            return Self::Crashed;
        }
        match info.overall_status() {
            ThreadStatus::Idle if info.head <= shared => Self::New,
            ThreadStatus::Idle => Self::Done,
            ThreadStatus::Queued => Self::Queued,
            ThreadStatus::Busy => Self::Busy,
            ThreadStatus::Interrupted => Self::Interrupted,
            ThreadStatus::Failed if info.error.as_deref() == Some(STOPPED) => Self::Stopped,
            ThreadStatus::Failed => Self::Failed,
            ThreadStatus::Parked => Self::Parked,
        }
    }

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns whether a thread has work that needs no answer of a person.
    pub fn can_continue(info: &ThreadInfo) -> bool {
        let is_at_rest = info.status == ThreadStatus::Idle;
        !is_at_rest
            && matches!(
                Self::of(info),
                Self::Crashed | Self::Failed | Self::Stopped | Self::Parked | Self::Queued
            )
    }

    fn kept(self) -> ThreadStatus {
        match self {
            Self::New | Self::Done => ThreadStatus::Idle,
            Self::Queued => ThreadStatus::Queued,
            Self::Busy | Self::Crashed => ThreadStatus::Busy,
            Self::Interrupted => ThreadStatus::Interrupted,
            Self::Failed | Self::Stopped => ThreadStatus::Failed,
            Self::Parked => ThreadStatus::Parked,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Only threads with one of these statuses; empty means all.
    pub statuses: Vec<LiveStatus>,
    pub tenant: Option<String>,
    pub limit: Option<u32>,
}

impl Listing {
    fn has(&self, info: &ThreadInfo) -> bool {
        let stands = self.statuses.is_empty() || self.statuses.contains(&LiveStatus::of(info));
        stands && self.tenant.as_ref().is_none_or(|tenant| info.tenant == *tenant)
    }

    /// Returns the one stored status of all requested ones.
    fn kept(&self) -> Option<ThreadStatus> {
        let first = self.statuses.first()?.kept();
        self.statuses.iter().all(|one| one.kept() == first).then_some(first)
    }
}

impl Threads {
    /// Lists threads, newest update first.
    pub async fn list(&self, listing: &Listing) -> Result<Vec<ThreadInfo>, Error> {
        // The store filters by what it distinguishes; the rest is filtered here, and limited after that.
        let is_whole = listing.statuses.is_empty() && listing.tenant.is_none();
        let limit = listing.limit.filter(|_| is_whole);
        let filter = ThreadFilter { status: listing.kept(), limit, ..ThreadFilter::default() };
        let mut threads = self.0.list(&filter).await?;
        threads.retain(|info| listing.has(info));
        threads.truncate(listing.limit.map_or(usize::MAX, |limit| limit as usize));
        Ok(threads)
    }
}
