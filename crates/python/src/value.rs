//! The values of statements and rows: NULL, integers, text and bytes, in both databases.

use bytes::BytesMut;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString};
use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::{IsNull, Type, to_sql_checked};

use crate::error::Error;

/// One value of a statement or a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// The rows that one statement returned.
pub type Rows = Vec<Vec<Value>>;

/// A statement with its values; placeholders are written `?1`, `?2` and so on.
#[derive(Clone, Debug)]
pub struct Statement {
    pub sql: String,
    pub values: Vec<Value>,
}

impl Statement {
    /// Takes a statement from Python: its text and a sequence of values.
    pub fn from_python(statement: &Bound<'_, PyAny>) -> PyResult<Self> {
        let sql: String = statement.get_item(0)?.extract()?;
        let values = statement.get_item(1)?;
        let values =
            values.try_iter()?.map(|value| Value::from_python(&value?)).collect::<PyResult<_>>()?;
        Ok(Self { sql, values })
    }
}

impl Value {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            Ok(Self::Null)
        } else if let Ok(text) = value.cast::<PyString>() {
            Ok(Self::Text(text.to_str()?.to_owned()))
        } else if let Ok(bytes) = value.cast::<PyBytes>() {
            Ok(Self::Bytes(bytes.as_bytes().to_vec()))
        } else if value.is_instance_of::<PyInt>() {
            Ok(Self::Int(value.extract()?))
        } else if value.is_instance_of::<PyFloat>() {
            Ok(Self::Real(value.extract()?))
        } else {
            Err(PyTypeError::new_err(format!("no value of a database: {}", value.get_type())))
        }
    }

    /// Makes the Python object of a value.
    pub fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Null => py.None().into_bound(py),
            Self::Int(number) => number.into_pyobject(py)?.into_any(),
            Self::Real(number) => number.into_pyobject(py)?.into_any(),
            Self::Text(text) => text.into_pyobject(py)?.into_any(),
            Self::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        })
    }

    /// Reads a column of SQLite.
    pub fn from_sqlite(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Int(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }

    /// Reads a column of PostgreSQL; fails on types that no table of the package has.
    pub fn from_postgres(row: &tokio_postgres::Row, index: usize) -> Result<Self, Error> {
        let kind = row.columns()[index].type_();
        Ok(match *kind {
            Type::TEXT | Type::VARCHAR | Type::NAME | Type::UNKNOWN => {
                row.try_get::<_, Option<String>>(index)?.map_or(Self::Null, Self::Text)
            }
            Type::BYTEA => {
                row.try_get::<_, Option<Vec<u8>>>(index)?.map_or(Self::Null, Self::Bytes)
            }
            Type::INT8 => row.try_get::<_, Option<i64>>(index)?.map_or(Self::Null, Self::Int),
            Type::INT4 => row
                .try_get::<_, Option<i32>>(index)?
                .map_or(Self::Null, |number| Self::Int(number.into())),
            Type::FLOAT8 => row.try_get::<_, Option<f64>>(index)?.map_or(Self::Null, Self::Real),
            Type::BOOL => row
                .try_get::<_, Option<bool>>(index)?
                .map_or(Self::Null, |flag| Self::Int(flag.into())),
            _ => return Err(Error::Column(kind.name().to_owned())),
        })
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl tokio_postgres::types::ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) if *kind == Type::INT4 => i32::try_from(*number)?.to_sql(kind, out),
            Self::Int(number) => number.to_sql(kind, out),
            Self::Real(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(
            *kind,
            Type::TEXT
                | Type::VARCHAR
                | Type::BYTEA
                | Type::INT8
                | Type::INT4
                | Type::FLOAT8
                | Type::UNKNOWN
        )
    }

    to_sql_checked!();
}
