//! The index on SQLite and Postgres.
#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

mod databases;
mod earlier;
mod equal;
mod forgetting;
mod generations;
mod index;
mod kept;
mod merging;
mod pgvector;
mod reads;
mod reference;
mod scopes;
mod searching;
