//! The parser's dialects with what databases accept and the parser does not know.
//!
//! Each wraps the parser's own dialect, hands every question on to it, and adds operators.

mod postgres;
mod sqlite;

pub use postgres::Postgres;
pub use sqlite::Sqlite;

/// Hands questions that are answered by yes or no on to the wrapped dialect.
macro_rules! as_inner {
    ($($question:ident)*) => {
        $(fn $question(&self) -> bool {
            INNER.$question()
        })*
    };
}
use as_inner;
