//! Rows that were read, alike from both databases.

use std::fmt::Display;

use chrono::{DateTime, Utc};
use serde_json::Value as Json;
use sqlx::{
    ColumnIndex, Row as _, TypeInfo as _, ValueRef as _, postgres::PgRow, sqlite::SqliteRow,
};
use uuid::Uuid;

use crate::Error;

/// A row of an answer.
#[derive(Debug)]
pub struct Row(Inner);

#[derive(Debug)]
enum Inner {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl Row {
    /// Returns the value of a column, which is known by its name or counted from 0.
    ///
    /// # Errors
    /// [`Error::Column`] when there is no such column or it holds something else.
    pub fn get<T: FromColumn>(
        &self,
        column: impl ColumnIndex<SqliteRow> + ColumnIndex<PgRow> + Display,
    ) -> Result<T, Error> {
        let read = match &self.0 {
            Inner::Sqlite(row) => column.index(row).and_then(|column| T::from_sqlite(row, column)),
            Inner::Postgres(row) => {
                column.index(row).and_then(|column| T::from_postgres(row, column))
            }
        };
        read.map_err(|error| Error::Column {
            column: column.to_string(),
            reason: error.to_string(),
        })
    }
}

impl From<SqliteRow> for Row {
    fn from(row: SqliteRow) -> Self {
        Self(Inner::Sqlite(row))
    }
}

impl From<PgRow> for Row {
    fn from(row: PgRow) -> Self {
        Self(Inner::Postgres(row))
    }
}

/// What a column can be read as; the table at [`crate::Value`] says from which types.
pub trait FromColumn: Sized {
    #[doc(hidden)]
    fn from_sqlite(row: &SqliteRow, column: usize) -> Result<Self, sqlx::Error>;
    #[doc(hidden)]
    fn from_postgres(row: &PgRow, column: usize) -> Result<Self, sqlx::Error>;
}

macro_rules! alike {
    ($($kind:ty),*) => {$(
        impl FromColumn for $kind {
            fn from_sqlite(row: &SqliteRow, column: usize) -> Result<Self, sqlx::Error> {
                row.try_get(column)
            }

            fn from_postgres(row: &PgRow, column: usize) -> Result<Self, sqlx::Error> {
                row.try_get(column)
            }
        }
    )*};
}

alike!(bool, String, Vec<u8>, Uuid);

impl FromColumn for i64 {
    fn from_sqlite(row: &SqliteRow, column: usize) -> Result<Self, sqlx::Error> {
        row.try_get(column)
    }

    fn from_postgres(row: &PgRow, column: usize) -> Result<Self, sqlx::Error> {
        match row.try_get_raw(column)?.type_info().name() {
            "INT4" => row.try_get::<i32, _>(column).map(Self::from),
            "INT2" => row.try_get::<i16, _>(column).map(Self::from),
            _ => row.try_get(column),
        }
    }
}

impl FromColumn for f64 {
    fn from_sqlite(row: &SqliteRow, column: usize) -> Result<Self, sqlx::Error> {
        row.try_get(column)
    }

    fn from_postgres(row: &PgRow, column: usize) -> Result<Self, sqlx::Error> {
        match row.try_get_raw(column)?.type_info().name() {
            "FLOAT4" => row.try_get::<f32, _>(column).map(Self::from),
            _ => row.try_get(column),
        }
    }
}

impl FromColumn for DateTime<Utc> {
    fn from_sqlite(row: &SqliteRow, column: usize) -> Result<Self, sqlx::Error> {
        let micros: i64 = row.try_get(column)?;
        let time = Self::from_timestamp_micros(micros);
        time.ok_or_else(|| sqlx::Error::Decode(format!("not a time: {micros}").into()))
    }

    fn from_postgres(row: &PgRow, column: usize) -> Result<Self, sqlx::Error> {
        row.try_get(column)
    }
}

impl FromColumn for Json {
    fn from_sqlite(row: &SqliteRow, column: usize) -> Result<Self, sqlx::Error> {
        let text: String = row.try_get(column)?;
        serde_json::from_str(&text).map_err(|error| sqlx::Error::Decode(error.into()))
    }

    fn from_postgres(row: &PgRow, column: usize) -> Result<Self, sqlx::Error> {
        row.try_get(column)
    }
}

impl<T: FromColumn> FromColumn for Option<T> {
    fn from_sqlite(row: &SqliteRow, column: usize) -> Result<Self, sqlx::Error> {
        if row.try_get_raw(column)?.is_null() {
            Ok(None)
        } else {
            T::from_sqlite(row, column).map(Some)
        }
    }

    fn from_postgres(row: &PgRow, column: usize) -> Result<Self, sqlx::Error> {
        if row.try_get_raw(column)?.is_null() {
            Ok(None)
        } else {
            T::from_postgres(row, column).map(Some)
        }
    }
}
