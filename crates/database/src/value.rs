//! Values that are bound to placeholders, and rows that were read, alike for both databases.

use std::{borrow::Cow, fmt::Display};

use chrono::{DateTime, Utc};
use serde_json::Value as Json;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgRow, PgTypeInfo, Postgres};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments as _, ColumnIndex, Row as _, TypeInfo as _, ValueRef as _};
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
/// | `Written` | `TEXT` | `json`, which keeps the order of fields and how numbers are written |
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
    Written(Option<String>),
    Ints(Vec<i64>),
    Texts(Vec<String>),
}

impl Value {
    pub(crate) fn add_to_sqlite(&self, to: &mut SqliteArguments) -> Result<(), sqlx::Error> {
        let added = match self {
            Self::Int(value) => to.add(*value),
            Self::Real(value) => to.add(*value),
            Self::Bool(value) => to.add(*value),
            Self::Text(value) | Self::Written(value) => to.add(value.as_deref()),
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
            Self::Written(value) => to.add(value.as_deref().map(Written)),
            Self::Ints(values) => to.add(values.clone()),
            Self::Texts(values) => to.add(values.clone()),
        };
        added.map_err(sqlx::Error::Encode)
    }
}

/// JSON as a text of Postgres's type `json`; sqlx itself sends `jsonb`, whose fields the server reorders.
struct Written<'a>(&'a str);

impl sqlx::Type<Postgres> for Written<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(114))
    }
}

impl sqlx::Encode<'_, Postgres> for Written<'_> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <&str as sqlx::Encode<'_, Postgres>>::encode_by_ref(&self.0, buffer)
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

impl From<u64> for Value {
    /// A number beyond what a column takes is its greatest one.
    fn from(value: u64) -> Self {
        Self::Int(Some(i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

impl From<Option<u64>> for Value {
    fn from(value: Option<u64>) -> Self {
        value.map_or(Self::Int(None), Self::from)
    }
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
        let cell = match &self.0 {
            Inner::Sqlite(row) => column.index(row).map(|column| Cell::Sqlite(row, column)),
            Inner::Postgres(row) => column.index(row).map(|column| Cell::Postgres(row, column)),
        };
        let read = cell.and_then(T::from_cell);
        read.map_err(|error| Error::Column { column: column.to_string(), source: error.into() })
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

/// The types as which a column can be read; the table at [`Value`] lists the sources.
pub trait FromColumn: Sized {
    #[doc(hidden)]
    fn from_cell(cell: Cell<'_>) -> Result<Self, sqlx::Error>;
}

/// One column of a row.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Cell<'r> {
    Sqlite(&'r SqliteRow, usize),
    Postgres(&'r PgRow, usize),
}

macro_rules! alike {
    ($($kind:ty),*) => {$(
        impl FromColumn for $kind {
            fn from_cell(cell: Cell<'_>) -> Result<Self, sqlx::Error> {
                match cell {
                    Cell::Sqlite(row, column) => row.try_get(column),
                    Cell::Postgres(row, column) => row.try_get(column),
                }
            }
        }
    )*};
}

alike!(bool, String, Vec<u8>, Uuid);

impl FromColumn for i64 {
    fn from_cell(cell: Cell<'_>) -> Result<Self, sqlx::Error> {
        match cell {
            Cell::Sqlite(row, column) => row.try_get(column),
            Cell::Postgres(row, column) => match row.try_get_raw(column)?.type_info().name() {
                "INT4" => row.try_get::<i32, _>(column).map(Self::from),
                "INT2" => row.try_get::<i16, _>(column).map(Self::from),
                _ => row.try_get(column),
            },
        }
    }
}

/// Numbers that are stored as `i64`; one that the type does not have is refused.
macro_rules! numbers {
    ($($kind:ty => $read:expr),*) => {$(
        impl FromColumn for $kind {
            fn from_cell(cell: Cell<'_>) -> Result<Self, sqlx::Error> {
                let number = i64::from_cell(cell)?;
                let read: fn(i64) -> Option<Self> = $read;
                let beyond = || format!("a number out of range: {number}");
                read(number).ok_or_else(|| sqlx::Error::Decode(beyond().into()))
            }
        }
    )*};
}

numbers!(
    u64 => |number| u64::try_from(number).ok(),
    // The upper half is negative in a column of 32 bits.
    u32 => |number| {
        let negative = |_| i32::try_from(number).map(i32::cast_unsigned);
        u32::try_from(number).or_else(negative).ok()
    }
);

impl FromColumn for f64 {
    fn from_cell(cell: Cell<'_>) -> Result<Self, sqlx::Error> {
        match cell {
            Cell::Sqlite(row, column) => row.try_get(column),
            Cell::Postgres(row, column) => match row.try_get_raw(column)?.type_info().name() {
                "FLOAT4" => row.try_get::<f32, _>(column).map(Self::from),
                _ => row.try_get(column),
            },
        }
    }
}

impl FromColumn for DateTime<Utc> {
    fn from_cell(cell: Cell<'_>) -> Result<Self, sqlx::Error> {
        let micros: i64 = match cell {
            Cell::Sqlite(row, column) => row.try_get(column)?,
            Cell::Postgres(row, column) => return row.try_get(column),
        };
        let time = Self::from_timestamp_micros(micros);
        time.ok_or_else(|| sqlx::Error::Decode(format!("not a time: {micros}").into()))
    }
}

impl FromColumn for Json {
    fn from_cell(cell: Cell<'_>) -> Result<Self, sqlx::Error> {
        let text: String = match cell {
            Cell::Sqlite(row, column) => row.try_get(column)?,
            Cell::Postgres(row, column) => return row.try_get(column),
        };
        serde_json::from_str(&text).map_err(|error| sqlx::Error::Decode(error.into()))
    }
}

impl<T: FromColumn> FromColumn for Option<T> {
    fn from_cell(cell: Cell<'_>) -> Result<Self, sqlx::Error> {
        let is_null = match cell {
            Cell::Sqlite(row, column) => row.try_get_raw(column)?.is_null(),
            Cell::Postgres(row, column) => row.try_get_raw(column)?.is_null(),
        };
        if is_null { Ok(None) } else { T::from_cell(cell).map(Some) }
    }
}

/// A type as which a whole row is read: one column, a tuple of columns in their order, or a [`crate::stored_row`].
pub trait FromRow: Sized {
    fn from_row(row: &Row) -> Result<Self, Error>;
}

impl<T: FromColumn> FromRow for T {
    fn from_row(row: &Row) -> Result<Self, Error> {
        row.get(0)
    }
}

macro_rules! tuples {
    ($($($kind:ident $column:literal)+;)+) => {$(
        impl<$($kind: FromColumn),+> FromRow for ($($kind,)+) {
            fn from_row(row: &Row) -> Result<Self, Error> {
                Ok(($(row.get::<$kind>($column)?,)+))
            }
        }
    )+};
}

tuples! { A 0 B 1; A 0 B 1 C 2; A 0 B 1 C 2 D 3; }

/// A struct whose fields are columns; made by [`crate::stored_row`].
pub trait StoredRow: FromRow {
    const COLUMNS: &'static str;
}

/// Makes a struct that is read from the columns of its fields' names, or of the names that follow them.
#[macro_export]
macro_rules! stored_row {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$doc:meta])* pub $field:ident: $kind:ty $(= $column:literal)?),+ $(,)?
    }) => {
        $(#[$meta])*
        pub struct $name { $($(#[$doc])* pub $field: $kind),+ }

        impl $crate::StoredRow for $name {
            const COLUMNS: &'static str = $crate::stored_row!(@list $($field $($column)?),+);
        }

        impl $crate::FromRow for $name {
            fn from_row(row: &$crate::Row) -> Result<Self, $crate::Error> {
                Ok(Self { $($field: row.get($crate::stored_row!(@column $field $($column)?))?),+ })
            }
        }
    };
    (@column $field:ident) => { stringify!($field) };
    (@column $field:ident $column:literal) => { $column };
    (@list $field:ident $($column:literal)? $(, $more:ident $($name:literal)?)*) => {
        concat!(
            $crate::stored_row!(@column $field $($column)?)
            $(, ", ", $crate::stored_row!(@column $more $($name)?))*
        )
    };
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

        impl $crate::FromColumn for $name {
            fn from_cell(cell: $crate::Cell<'_>) -> Result<Self, $crate::DecodeError> {
                let word = String::from_cell(cell)?;
                let unknown = || format!("unknown value, perhaps of a newer version of perihelion (then upgrade this binary): {word}");
                Self::from_name(&word).ok_or_else(|| $crate::DecodeError::Decode(unknown().into()))
            }
        }

        impl From<$name> for $crate::Value {
            fn from(word: $name) -> Self {
                word.as_str().into()
            }
        }
    };
}
