//! The index on SQLite and Postgres, and where it holds for it, in memory.
#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

mod databases;
mod earlier;
mod equal;
mod forgetting;
mod generations;
mod kept;
mod merging;
mod pgvector;
mod scopes;
mod searching;
