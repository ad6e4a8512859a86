//! Connections, dialects and migrations: what every room that keeps rows stands on.
//!
//! Enter at [`Database::open`], with the address that the runtime opens: `postgres://…`, `sqlite:PATH` or a bare
//! path, `memory:`. The same [`Query`] runs on both databases, with placeholders `$1`, `$2`, … and typed [`Value`]s;
//! where SQL differs, [`Dialect`] chooses. Who needs one database's own features uses [`sqlite::File`] or
//! [`postgres::Connections`], on which [`Database`] stands as well.
//!
//! Invariant: a database is opened migrated, or refused with the way out. Deliberately absent: an object mapper,
//! and any knowledge of what the rows mean.

mod acting;
pub mod address;
mod clock;
mod database;
mod error;
pub mod migrations;
pub mod postgres;
mod query;
pub mod sqlite;
mod transaction;
mod value;

pub use address::{is_there, redact_url};
pub use database::Database;
pub use error::{Error, is_passing};
pub use query::{Dialect, Query, Values, query};
pub use transaction::Transaction;
pub use value::{FromColumn, Row, Value};
