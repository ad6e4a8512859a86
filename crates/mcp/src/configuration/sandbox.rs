//! What a server may see and do where it is confined.

use std::path::PathBuf;

/// What a confined server may see and do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Absolute paths that it may read.
    pub read_only: Vec<PathBuf>,
    /// Absolute paths that it may read and write.
    pub writable: Vec<PathBuf>,
    /// The network of this machine; without it there is none, not even loopback of others.
    pub network: bool,
    /// Bytes that its scratch directory, which is in memory, may hold; none: half of the machine's memory.
    pub scratch_bytes: Option<u64>,
}
