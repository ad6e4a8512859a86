//! What threads ask people.

use async_trait::async_trait;

use super::super::{Encoded, Error, OpenInterrupt};
use crate::ids::{InterruptId, ThreadId};

/// Keeps open interrupts, which are effects, and takes their answers.
///
/// Crash contract: an answer that was acknowledged is there, and its thread is queued or will be by the end of its run;
/// a second one is refused.
#[async_trait]
pub trait Questions: Send + Sync {
    /// Returns the open interrupts of the thread and of its subgraphs' threads, oldest first.
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>, Error>;

    /// Returns the thread at the top below which an open interrupt is asked; `None` when it is not open.
    async fn asked_below(&self, interrupt: InterruptId) -> Result<Option<ThreadId>, Error>;

    /// Answers an interrupt; not fenced, since a person answers while nobody holds the thread.
    ///
    /// The same write queues the thread at the top if it is interrupted, wake-up call included, and marks
    /// it if it is busy, so that the end of its run queues it: an answer is never waited for in vain.
    ///
    /// [`Error::InterruptClosed`] on a second answer, [`Error::UnknownInterrupt`] when there is none.
    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<(), Error>;
}
