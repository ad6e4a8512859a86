//! Writes a result as a file that other programs open.

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
    let failed = |error: &dyn std::fmt::Display| Error::Export(error.to_string());
    match format {
        Format::Json => serde_json::to_vec_pretty(answer).map_err(|error| failed(&error)),
        Format::Csv => {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(&answer.columns).map_err(|error| failed(&error))?;
            for row in &answer.rows {
                writer.write_record(row.iter().map(cell)).map_err(|error| failed(&error))?;
            }
            writer.into_inner().map_err(|error| failed(&error))
        }
        Format::Xlsx => xlsx(answer).map_err(|error| failed(&error)),
    }
}

fn xlsx(answer: &Answer) -> Result<Vec<u8>, rust_xlsxwriter::XlsxError> {
    let mut book = rust_xlsxwriter::Workbook::new();
    let bold = rust_xlsxwriter::Format::new().set_bold();
    let sheet = book.add_worksheet();
    for (column, name) in (0u16..).zip(&answer.columns) {
        sheet.write_string_with_format(0, column, name, &bold)?;
    }
    for (row, values) in (1u32..).zip(&answer.rows) {
        for (column, value) in (0u16..).zip(values) {
            match value {
                Value::Null => continue,
                Value::Bool(value) => sheet.write_boolean(row, column, *value)?,
                Value::Number(number) => match number.as_f64() {
                    Some(value) => sheet.write_number(row, column, value)?,
                    None => sheet.write_string(row, column, number.to_string())?,
                },
                other => sheet.write_string(row, column, cell(other))?,
            };
        }
    }
    book.save_to_buffer()
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
