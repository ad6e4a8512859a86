//! The public part of Postgres' errors: its own text while a statement is parsed, ours while it runs.
//!
//! The server can evaluate a statement on rows that a filter or a view leaves out, and quotes invalid values:
//! `invalid input syntax for type integer: "the hidden text"`. Invariant: of the server's messages during the reading
//! of rows, a reader sees only which of the texts and codes below it is.

use std::time::Duration;

use sqlx::postgres::PgDatabaseError;

use crate::{Error, hint};

const QUERY_CANCELED: &str = "57014";
const PERMISSION_DENIED: &str = "42501";

#[derive(Debug)]
pub enum Failure {
    /// Its text was read, and no row.
    Reading(sqlx::Error),
    /// It ran, or was planned, which may evaluate it on rows.
    Running(sqlx::Error),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Running(error)
    }
}

impl Failure {
    /// Returns the error for the writer of the statement, which was allowed to run for `limit`.
    pub fn into_error(self, limit: Duration) -> Error {
        let (Self::Reading(error) | Self::Running(error)) = &self;
        let code = error.as_database_error().and_then(|error| error.code());
        if code.as_deref() == Some(QUERY_CANCELED) {
            return Error::Timeout { limit };
        }
        if code.as_deref() == Some(PERMISSION_DENIED) && matches!(self, Self::Running(_)) {
            let text = error.as_database_error().map_or("", |error| error.message());
            let kinds = ["table", "view"].map(|kind| format!("permission denied for {kind} "));
            let hint = if kinds.iter().any(|kind| text.starts_with(kind)) {
                "; instead of *, list columns that describe_table shows"
            } else {
                "; read only tables that list_tables shows, and call no other functions"
            };
            let message = "permission denied".to_owned();
            return Error::Database { message, hint: hint.to_owned() };
        }
        match self {
            Self::Reading(error) => database_error(error),
            Self::Running(sqlx::Error::Database(error)) => {
                let code = error.code().unwrap_or_default();
                // The name of a function of the server's own, such as `int4div`.
                let place = error.try_downcast_ref::<PgDatabaseError>().and_then(|e| e.routine());
                hint::while_running(error.message(), MESSAGES, kind(&code), place)
            }
            Self::Running(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => {
                hint::while_running("", MESSAGES, "a value could not be read", None)
            }
            Self::Running(error) => database_error(error),
        }
    }
}

/// Describes an error in the server's words; for statements of this program, and for those that read no row.
pub fn database_error(error: sqlx::Error) -> Error {
    let sqlx::Error::Database(error) = error else {
        return Error::Database { message: error.to_string(), hint: String::new() };
    };
    let mut message = error.message().to_owned();
    if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
        for more in [error.detail(), error.hint()].into_iter().flatten() {
            message.push_str(&format!(" ({more})"));
        }
    }
    Error::Database { message, hint: String::new() }
}

fn kind(code: &str) -> &'static str {
    let class = code.get(..2).unwrap_or_default();
    let found = KINDS.iter().find(|(known, _)| *known == code);
    found
        .or_else(|| KINDS.iter().find(|(known, _)| *known == class))
        .map_or("an error", |(_, kind)| kind)
}

const KINDS: &[(&str, &str)] = &[
    ("08", "the connection failed"),
    ("21000", "more than one row where one is expected"),
    ("22", "a value that cannot be used"),
    ("22001", "a text that is too long for its type"),
    ("22003", "a number out of range"),
    ("22007", "a text that is no date or time"),
    ("22008", "a date or time out of range"),
    ("22009", "an invalid time zone displacement"),
    ("22012", "division by zero"),
    ("22015", "an interval out of range"),
    ("22019", "an invalid escape character"),
    ("22021", "a character that the encoding does not have"),
    ("22023", "an invalid parameter of a function"),
    ("22025", "an invalid escape sequence"),
    ("22026", "a bit string of the wrong length"),
    ("22030", "a JSON key that is there twice"),
    ("22032", "an invalid JSON text"),
    ("2201B", "an invalid regular expression"),
    ("2201E", "an invalid argument of a logarithm"),
    ("2201F", "an invalid argument of a power"),
    ("2201G", "an invalid argument of width_bucket"),
    ("2202E", "an array of the wrong shape"),
    ("2202G", "an invalid TABLESAMPLE REPEATABLE"),
    ("2202H", "an invalid TABLESAMPLE argument"),
    ("22P02", "a text that cannot be read as the type asked for"),
    ("22P03", "a value that cannot be read as the type asked for"),
    ("22P05", "a character that cannot be translated"),
    ("23", "a value that its type's conditions exclude"),
    ("25006", "the transaction is read-only"),
    ("40", "the server asks to try again"),
    ("42", "a text that cannot be read as a name, pattern, path or search of the kind asked for"),
    ("53", "the server lacks memory, disk space or connections"),
    ("54", "a limit of the server is exceeded"),
    ("55", "something that the statement needs is in another state"),
    ("57", "the server is stopping"),
    ("58", "the server's system failed"),
    ("XX", "an internal error of the server"),
];

/// Beginnings of messages that say more than their code.
const MESSAGES: &[&str] = &[
    "array subscript out of range",
    "bigint out of range",
    "cannot cast jsonb array",
    "cannot cast jsonb boolean",
    "cannot cast jsonb null",
    "cannot cast jsonb numeric",
    "cannot cast jsonb object",
    "cannot cast jsonb string",
    "cannot get array length of a non-array",
    "cannot get array length of a scalar",
    "cannot call jsonb_object_keys on a scalar",
    "cannot call jsonb_object_keys on an array",
    "cannot deconstruct a scalar",
    "cannot deconstruct an array as an object",
    "cannot extract elements from a scalar",
    "cannot extract elements from an object",
    "cannot take logarithm of a negative number",
    "cannot take logarithm of zero",
    "cannot take square root of a negative number",
    "date out of range",
    "date/time field value out of range",
    "division by zero",
    "input is out of range",
    "integer out of range",
    "interval out of range",
    "invalid base64 end sequence",
    "invalid escape string",
    "invalid hexadecimal data: odd number of digits",
    "invalid hexadecimal digit",
    "invalid input syntax for type bigint",
    "invalid input syntax for type boolean",
    "invalid input syntax for type bytea",
    "invalid input syntax for type date",
    "invalid input syntax for type double precision",
    "invalid input syntax for type integer",
    "invalid input syntax for type interval",
    "invalid input syntax for type json",
    "invalid input syntax for type jsonpath",
    "invalid input syntax for type money",
    "invalid input syntax for type numeric",
    "invalid input syntax for type real",
    "invalid input syntax for type smallint",
    "invalid input syntax for type time",
    "invalid input syntax for type time with time zone",
    "invalid input syntax for type timestamp",
    "invalid input syntax for type timestamp with time zone",
    "invalid input syntax for type uuid",
    "invalid regular expression",
    "invalid value for",
    "lower bound cannot equal upper bound",
    "malformed array literal",
    "malformed multirange literal",
    "malformed range literal",
    "malformed record literal",
    "more than one row returned by a subquery used as an expression",
    "negative substring length not allowed",
    "numeric field overflow",
    "range lower bound must be less than or equal to range upper bound",
    "requested character too large",
    "requested length too large",
    "smallint out of range",
    "step size cannot be NaN",
    "step size cannot equal zero",
    "syntax error in tsquery",
    "syntax error in tsvector",
    "timestamp out of range",
    "trailing junk after numeric literal",
    "value overflows numeric format",
    "value too long for type character",
    "value too long for type character varying",
    "zero raised to a negative power is undefined",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_code_is_classified_by_its_class() {
        assert_eq!(kind("22012"), "division by zero");
        assert_eq!(kind("22ZZZ"), "a value that cannot be used");
        assert_eq!(kind("P0001"), "an error");
        assert_eq!(kind("§"), "an error");
    }
}
