//! The journal: what tasks asked the world for, and what came of it.

use async_trait::async_trait;

use super::super::{EffectRow, EffectSettlement, Error, Fence};
use crate::ids::ThreadId;

/// Keeps the effects of a thread's tasks.
///
/// Crash contract: an effect that was recorded is found by the one who continues with the thread; one whose end was lost
/// stands as started. The writing methods write nothing and return [`Error::Fenced`] when the token is not the
/// thread's newest; the check and the write are one statement.
#[async_trait]
pub trait Effects: Send + Sync {
    /// Records effects of one task: started tool calls, open interrupts, finished calls of any kind, notes. Fenced.
    ///
    /// One that is there already stays as it is.
    async fn record_effects(&self, fence: Fence, effects: &[EffectRow]) -> Result<(), Error>;

    /// Records the end or a further attempt of an effect that is started or failed. Fenced.
    ///
    /// One that is done stays as it is: [`Error::UnknownEffect`], unless the settlement is the same one.
    async fn settle_effect(&self, fence: Fence, end: &EffectSettlement) -> Result<(), Error>;

    /// Returns the effects of one step, or of all, in order of step, task and number; own rows only.
    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>, Error>;

    /// Returns the effects of `step` and of any later one, which a crash may have left uncommitted.
    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>, Error>;
}
