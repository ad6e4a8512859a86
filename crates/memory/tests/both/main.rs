//! Skills and memories on SQLite and Postgres.
#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

#[path = "../../../recall/tests/both/databases.rs"]
mod databases;
mod skills;
mod users;
