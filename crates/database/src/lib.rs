//! Connections, dialects and migrations: the base of every module with stored rows.
//!
//! Enter at [`Database::open`], with the address that the runtime opens: `postgres://…`, `sqlite:PATH` or a bare path,
//! `memory:`. The same [`Query`] runs on both databases, with placeholders `$1`, `$2`, … and typed [`Value`]s; where
//! SQL differs, [`Dialect`] chooses. Code that needs the features of one database uses [`sqlite::File`] or
//! [`postgres::Connections`], on which [`Database`] is built.
//!
//! Invariant: a database is opened migrated, or refused with the way out. Deliberately absent: an object mapper
//! beyond [`stored_row`], and any knowledge of the meaning of rows.

mod acting;
pub mod address;
mod database;
mod error;
pub mod migrations;
pub mod postgres;
mod query;
mod round_trips;
pub mod sqlite;
mod transaction;
mod value;

pub use address::{is_there, redact_url};
pub use database::Database;
pub use error::{Cause, Error, is_passing};
use perihelion_clock as clock;
pub use query::{Dialect, Query, Values, query, select};
pub use round_trips::round_trips;
pub use transaction::Transaction;
pub use value::{Cell, FromColumn, FromRow, Row, StoredRow, Value};

#[doc(hidden)]
pub use sqlx::Error as DecodeError;
