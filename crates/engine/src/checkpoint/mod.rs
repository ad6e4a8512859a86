//! Keeps threads: every committed step, every recorded effect, every open question.
//!
//! Enter at [`Store`], the union of a few small traits that memory, SQLite and Postgres implement and one
//! conformance suite holds them to. Invariant: what a method acknowledged survives a crash, and a writer whose fencing
//! token is stale changes nothing. Deliberately absent: any typed state (a store moves bytes; see
//! [`Encoded`]) and any decision about what to run next.

mod address;
mod blobs;
mod both;
mod chain;
mod checksum;
mod claim;
mod dump;
mod encoded;
mod error;
mod events;
mod family;
mod group_commit;
mod hex;
mod limits;
mod lineage;
mod memory;
mod outbox;
mod postgres;
mod questions;
mod restore;
mod retry;
mod rows;
mod sealed;
mod sqlite;
mod state_cache;
mod step_row;
mod store;
mod traits;

pub use address::{open, open_sealed};
pub use blobs::{blob_row, names_of_state, read_blob};
pub use chain::chain_hash;
pub use claim::{Claim, Fence};
pub use dump::{ThreadDump, read_dump, write_dump};
pub use encoded::{Codec, Encoded};
pub use error::Error;
pub use events::{EventPosition, EventRow};
pub use lineage::Lineage;
pub use memory::MemoryStore;
pub use outbox::{Outbox, PendingExport};
pub use perihelion_database::{is_there, redact_url};
pub use postgres::PostgresStore;
pub use questions::{awaited_interrupts, check_newest};
pub use restore::{Restored, fork_to, forked_to, read_delta, restore};
pub use rows::{
    BlobRow, Commit, EffectKind, EffectRow, EffectSettlement, EffectStatus, Loaded, NewThread,
    OpenInterrupt, PendingRow, RunEnd, RunRow, RunStatus, SnapshotRow, StepKind, StepRow,
    ThreadFilter, ThreadInfo, ThreadStatus, Waiting, Wanted,
};
pub use sealed::{Keyring, SealedStore};
pub use sqlite::SqliteStore;
pub use state_cache::StateCache;
pub use store::Store;
pub use traits::{Effects, Events, Leases, Questions, Steps, Threads, Transfer};
