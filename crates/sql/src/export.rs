//! Writes a result as a file that other programs open.

mod xlsx;

use serde_json::Value;

use crate::{Answer, Error};

/// How a result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    Xlsx,
    Json,
}

impl Format {
    /// Returns the ending of such a file's name.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Xlsx => "xlsx",
            Self::Json => "json",
        }
    }
}

/// Returns the bytes of the file.
///
/// # Errors
/// [`Error::Export`] when the format cannot hold the result.
pub fn export(answer: &Answer, format: Format) -> Result<Vec<u8>, Error> {
    let written: Result<Vec<u8>, std::io::Error> = match format {
        Format::Json => serde_json::to_vec_pretty(answer).map_err(std::io::Error::from),
        Format::Csv => csv(answer),
        Format::Xlsx => xlsx::workbook(answer),
    };
    written.map_err(Error::Export)
}

fn csv(answer: &Answer) -> Result<Vec<u8>, std::io::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&answer.columns)?;
    for row in &answer.rows {
        writer.write_record(row.iter().map(cell))?;
    }
    writer.into_inner().map_err(csv::IntoInnerError::into_error)
}

/// Writes a value as text; what a spreadsheet would take for a formula is kept from being one.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => {
            format!("'{text}")
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
