//! Leases and runs pass through; only why a run stopped is encrypted.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    super::{Claim, Error, Fence, Leases, RunEnd, RunRow, ThreadInfo, Waiting, Wanted},
    SealedStore,
    label::{open_info, seal_error},
};
use crate::ids::{RunId, ThreadId};

#[async_trait]
impl Leases for SealedStore {
    async fn claim(&self, claim: Claim<'_>) -> Result<ThreadInfo, Error> {
        Ok(open_info(&self.keys, self.inner.claim(claim).await?))
    }

    async fn waiting(&self, wanted: &Wanted) -> Result<Vec<Waiting>, Error> {
        self.inner.waiting(wanted).await
    }

    async fn renew(&self, fence: Fence, ttl: Duration) -> Result<(), Error> {
        self.inner.renew(fence, ttl).await
    }

    async fn begin_run(&self, fence: Fence, run: RunId, exports: bool) -> Result<RunRow, Error> {
        self.inner.begin_run(fence, run, exports).await
    }

    async fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> Result<(), Error> {
        let seal = |error| seal_error(&self.keys, fence.thread, error);
        let error = end.error.map(seal).transpose()?;
        self.inner.end_run(fence, run, RunEnd { error: error.as_deref(), ..end }).await
    }

    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>, Error> {
        self.inner.runs(thread).await
    }
}
