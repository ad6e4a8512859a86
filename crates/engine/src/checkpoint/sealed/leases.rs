//! Leases and runs pass through; only why a run stopped is encrypted.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    super::{Error, Leases, RunEnd, RunRow, ThreadInfo, Waiting, Wanted},
    SealedStore,
    label::{open_info, seal_error},
};
use crate::ids::{RunId, ThreadId};

#[async_trait]
impl Leases for SealedStore {
    async fn claim(
        &self,
        thread: ThreadId,
        owner: &str,
        ttl: Duration,
        force: bool,
    ) -> Result<ThreadInfo, Error> {
        Ok(open_info(&self.keys, self.inner.claim(thread, owner, ttl, force).await?))
    }

    async fn claim_at(
        &self,
        thread: ThreadId,
        fence: u64,
        owner: &str,
        ttl: Duration,
        force: bool,
    ) -> Result<ThreadInfo, Error> {
        let claimed = self.inner.claim_at(thread, fence, owner, ttl, force).await?;
        Ok(open_info(&self.keys, claimed))
    }

    async fn waiting(&self, wanted: &Wanted) -> Result<Vec<Waiting>, Error> {
        self.inner.waiting(wanted).await
    }

    async fn renew(&self, thread: ThreadId, fence: u64, ttl: Duration) -> Result<(), Error> {
        self.inner.renew(thread, fence, ttl).await
    }

    async fn begin_run(
        &self,
        thread: ThreadId,
        fence: u64,
        run: RunId,
        exports_trace: bool,
    ) -> Result<RunRow, Error> {
        self.inner.begin_run(thread, fence, run, exports_trace).await
    }

    async fn end_run(
        &self,
        thread: ThreadId,
        fence: u64,
        run: RunId,
        end: RunEnd<'_>,
    ) -> Result<(), Error> {
        let error = end.error.map(|error| seal_error(&self.keys, thread, error)).transpose()?;
        self.inner.end_run(thread, fence, run, RunEnd { error: error.as_deref(), ..end }).await
    }

    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>, Error> {
        self.inner.runs(thread).await
    }
}
