//! One suite that every store must pass: memory, SQLite and Postgres behave alike.
//!
//! Each theme is a file; each of its tests takes a [`stores::Fixture`] and runs on every store.

#![expect(clippy::panic, clippy::expect_used, reason = "a test that cannot continue has failed")]

mod archives;
mod archives_killed;
mod archives_of_families;
mod blobs;
mod broken_connections;
mod commits;
mod concurrency;
mod dumps;
mod each;
mod effects;
mod forks;
mod histories;
mod leases;
mod many_writers;
mod opening;
mod outbox;
mod pending;
mod removals;
mod returns;
mod runs;
mod sealed;
mod silence;
pub mod stores;
mod stuck;
mod threads;
mod values;
pub mod writer;

pub(crate) use each::{on_durable_stores, on_every_store, on_every_store_sealed_too, on_store};
