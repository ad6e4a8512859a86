//! Keeps threads: every committed step, every recorded effect, every open question.
//!
//! Enter at [`Store`], the union of a few small traits that memory, SQLite and Postgres implement and one conformance
//! suite holds them to. Invariant: an acknowledged write survives a crash, and a writer with a stale fencing token
//! changes no row. Deliberately absent: any typed state (a store moves bytes; see [`Encoded`]) and any decision about
//! what to run next.

mod archive;
mod blobs;
mod both;
mod chain;
mod checksum;
mod claim;
mod dump;
mod encoded;
mod error;
mod family;
mod filters;
mod group_commit;
mod limits;
mod lineage;
mod memory;
mod postgres;
mod questions;
mod restore;
mod rows;
mod sealed;
mod sqlite;
mod state_cache;
mod statuses;
mod traits;

pub use archive::{Archive, Archiving};
pub(crate) use blobs::names_in;
pub use blobs::{blob_row, names_of_state, read_blob};
pub use chain::chain_hash;
pub use claim::{Begun, Claim, Fence};
pub use dump::{ThreadDump, read_dump, write_dump};
pub(crate) use encoded::Counting;
pub use encoded::{Codec, Encoded};
pub(crate) use error::Result;
pub use error::{Cause, Error};
pub use family::check_family;
pub use filters::{ThreadFilter, Waiting, WorkFilter};
pub use lineage::Lineage;
pub use memory::MemoryStore;
pub use perihelion_database::{is_there, redact_url};
pub use postgres::PostgresStore;
pub use questions::{awaited_interrupts, check_newest};
pub(crate) use restore::frontier_of;
pub use restore::{Restored, fork_to, forked_to, read_delta, restore};
pub use rows::{
    BlobRow, Commit, EffectRow, EffectSettlement, EventPosition, EventRow, Loaded, NewThread,
    OpenInterrupt, PendingExport, PendingRow, RunEnd, RunRow, SnapshotRow, StepRow, ThreadInfo,
};
pub use sealed::{Keyring, SealedStore};
pub use sqlite::SqliteStore;
pub use state_cache::StateCache;
pub use statuses::{EffectKind, EffectStatus, RunStatus, StepKind, ThreadStatus};
pub use traits::{
    Effects, Events, Leases, Outbox, Questions, Steps, Store, Threads, Transfer, open, open_with,
};
