//! Whole threads, out and in.

use async_trait::async_trait;

use super::super::{Error, ThreadDump};
use crate::ids::ThreadId;

/// Reads and writes threads as a whole.
///
/// Crash contract: an export changes nothing and is of one moment; an import leaves the thread with its subgraphs'
/// threads, or nothing.
#[async_trait]
pub trait Transfer: Send + Sync {
    /// Reads a whole thread; [`Error::Corrupt`] where [`Transfer::import`] would refuse it.
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error>;

    /// Writes a whole thread in one transaction; [`Error::ThreadExists`] when its id is taken.
    async fn import(&self, dump: &ThreadDump) -> Result<(), Error>;
}
