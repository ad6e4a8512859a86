//! Values that are bound to placeholders, alike for both databases.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde_json::Value as Json;
use sqlx::{Arguments as _, postgres::PgArguments, sqlite::SqliteArguments};
use uuid::Uuid;

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
    Vec<u8> => Bytes, &[u8] => Bytes, Uuid => Id, DateTime<Utc> => Time, Json => Json,
}

impl From<Cow<'_, str>> for Value {
    fn from(value: Cow<'_, str>) -> Self {
        Self::Text(Some(value.into_owned()))
    }
}

impl From<Option<Cow<'_, str>>> for Value {
    fn from(value: Option<Cow<'_, str>>) -> Self {
        Self::Text(value.map(Cow::into_owned))
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Self {
        Self::Text(Some(value.clone()))
    }
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
