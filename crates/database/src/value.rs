//! Values that are bound to placeholders, and rows that were read, alike for both databases.

use std::{borrow::Cow, fmt::Display};

use chrono::{DateTime, Utc};
use serde_json::Value as Json;
use sqlx::{
    Arguments as _, ColumnIndex, Row as _, TypeInfo as _, ValueRef as _,
    postgres::{PgArguments, PgRow},
    sqlite::{SqliteArguments, SqliteRow},
};
use uuid::Uuid;

use crate::Error;

/// A value for a placeholder; `None` is NULL of that type.
///
/// | value | SQLite | Postgres |
/// |---|---|---|
/// | `Int` | `INTEGER` | `bigint` |
/// | `Real` | `REAL` | `double precision` |
/// | `Text`, `Bytes`, `Bool` | `TEXT`, `BLOB`, `INTEGER` | `text`, `bytea`, `boolean` |
/// | `Id` | `BLOB` of 16 bytes | `uuid` |
/// | `Time` | `INTEGER`, microseconds since 1970 | `timestamptz` |
/// | `Json` | `TEXT` | `jsonb` |
/// | `Ints`, `Texts` | a JSON array, for [`crate::Dialect::one_of`] | `bigint[]`, `text[]` |
#[derive(Clone, Debug)]
pub enum Value {
    Int(Option<i64>),
    Real(Option<f64>),
    Bool(Option<bool>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Id(Option<Uuid>),
    Time(Option<DateTime<Utc>>),
    Json(Option<Json>),
    Ints(Vec<i64>),
    Texts(Vec<String>),
}

impl Value {
    pub(crate) fn add_to_sqlite(&self, to: &mut SqliteArguments) -> Result<(), sqlx::Error> {
        let added = match self {
            Self::Int(value) => to.add(*value),
            Self::Real(value) => to.add(*value),
            Self::Bool(value) => to.add(*value),
            Self::Text(value) => to.add(value.as_deref()),
            Self::Bytes(value) => to.add(value.as_deref()),
            Self::Id(value) => to.add(*value),
            Self::Time(value) => to.add(value.map(|time| time.timestamp_micros())),
            Self::Json(value) => to.add(value.as_ref().map(Json::to_string)),
            Self::Ints(values) => to.add(Json::from(values.clone()).to_string()),
            Self::Texts(values) => to.add(Json::from(values.clone()).to_string()),
        };
        added.map_err(sqlx::Error::Encode)
    }

    pub(crate) fn add_to_postgres(&self, to: &mut PgArguments) -> Result<(), sqlx::Error> {
        let added = match self {
            Self::Int(value) => to.add(*value),
            Self::Real(value) => to.add(*value),
            Self::Bool(value) => to.add(*value),
            Self::Text(value) => to.add(value.as_deref()),
            Self::Bytes(value) => to.add(value.as_deref()),
            Self::Id(value) => to.add(*value),
            Self::Time(value) => to.add(*value),
            Self::Json(value) => to.add(value.clone()),
            Self::Ints(values) => to.add(values.clone()),
            Self::Texts(values) => to.add(values.clone()),
        };
        added.map_err(sqlx::Error::Encode)
    }
}

macro_rules! from {
    ($($kind:ty => $variant:ident),* $(,)?) => {$(
        impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                Self::$variant(Some(value.into()))
            }
        }

        impl From<Option<$kind>> for Value {
            fn from(value: Option<$kind>) -> Self {
                Self::$variant(value.map(Into::into))
            }
        }
    )*};
}

from! {
    i64 => Int, i32 => Int, i16 => Int, u32 => Int, f64 => Real, bool => Bool, String => Text, &str => Text,
    &String => Text, Cow<'_, str> => Text, Vec<u8> => Bytes, &[u8] => Bytes, Uuid => Id,
    DateTime<Utc> => Time, Json => Json,
}

impl From<Vec<i64>> for Value {
    fn from(values: Vec<i64>) -> Self {
        Self::Ints(values)
    }
}

impl From<Vec<String>> for Value {
    fn from(values: Vec<String>) -> Self {
        Self::Texts(values)
    }
}

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

/// What a column can be read as; the table at [`Value`] says from which types.
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

/// Makes an enum that is stored as words, and whose JSON they are; it refuses unknown ones.
#[macro_export]
macro_rules! stored_words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Returns the word as stored.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads a stored word.
            pub fn from_name(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
