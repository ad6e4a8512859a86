//! Writes a result as a file that other programs open.

use std::io::{Cursor, Write as _};

use serde_json::Value;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::{Answer, Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    Xlsx,
    Json,
}

impl Format {
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
/// [`Error::Export`] when the format cannot contain the result.
pub fn export(answer: &Answer, format: Format) -> Result<Vec<u8>> {
    let written: Result<Vec<u8>, std::io::Error> = match format {
        Format::Json => serde_json::to_vec_pretty(answer).map_err(std::io::Error::from),
        Format::Csv => csv(answer),
        Format::Xlsx => workbook(answer),
    };
    written.map_err(Error::Export)
}

fn csv(answer: &Answer) -> Result<Vec<u8>, std::io::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(answer.columns.iter().map(|name| plain(name)))?;
    for row in &answer.rows {
        writer.write_record(row.iter().map(cell))?;
    }
    writer.into_inner().map_err(csv::IntoInnerError::into_error)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => plain(text),
        other => other.to_string(),
    }
}

/// Escapes a text that a spreadsheet would read as a formula; a number is none.
fn plain(text: &str) -> String {
    let begins = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let is_number =
        text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
            && text.parse::<f64>().is_ok();
    if begins && !is_number { format!("'{text}") } else { text.to_owned() }
}

/// Most digits of a number that a spreadsheet keeps.
const MOST_DIGITS: usize = 15;

/// Most characters of a cell; a result has fewer rows and columns than a sheet.
const MOST_CHARACTERS: usize = 32_767;

/// The parts of a workbook that do not depend on its cells.
const PARTS: [(&str, &str); 5] = [
    (
        "[Content_Types].xml",
        r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/><Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/></Types>"#,
    ),
    (
        "_rels/.rels",
        r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#,
    ),
    (
        "xl/workbook.xml",
        r#"<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>"#,
    ),
    (
        "xl/_rels/workbook.xml.rels",
        r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/></Relationships>"#,
    ),
    (
        "xl/styles.xml",
        r#"<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="2"><xf/><xf fontId="1" applyFont="1"/></cellXfs></styleSheet>"#,
    ),
];

/// Writes the workbook; fails for values that a sheet cannot contain.
fn workbook(answer: &Answer) -> Result<Vec<u8>, std::io::Error> {
    let mut sheet = String::from(
        r#"<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row>"#,
    );
    for name in &answer.columns {
        text(&mut sheet, name, r#" s="1""#)?;
    }
    for row in &answer.rows {
        sheet.push_str("</row><row>");
        for value in row {
            match value {
                Value::Null => sheet.push_str("<c/>"),
                Value::Bool(true) => sheet.push_str(r#"<c t="b"><v>1</v></c>"#),
                Value::Bool(false) => sheet.push_str(r#"<c t="b"><v>0</v></c>"#),
                Value::Number(number) => {
                    let written = number.to_string();
                    if !number.is_f64() && written.trim_start_matches('-').len() > MOST_DIGITS {
                        text(&mut sheet, &written, "")?;
                    } else {
                        sheet.push_str(&format!("<c><v>{written}</v></c>"));
                    }
                }
                // A text of a workbook is never a formula.
                Value::String(words) => text(&mut sheet, words, "")?,
                other => text(&mut sheet, &other.to_string(), "")?,
            }
        }
    }
    sheet.push_str("</row></sheetData></worksheet>");
    let mut file = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in PARTS.into_iter().chain([("xl/worksheets/sheet1.xml", &*sheet)]) {
        file.start_file(name, SimpleFileOptions::default())?;
        file.write_all(content.as_bytes())?;
    }
    Ok(file.finish()?.into_inner())
}

/// Writes a cell of text, without what XML cannot contain.
fn text(sheet: &mut String, text: &str, style: &str) -> Result<(), std::io::Error> {
    if text.chars().count() > MOST_CHARACTERS {
        return Err(std::io::Error::other(format!(
            "a cell has at most {MOST_CHARACTERS} characters"
        )));
    }
    sheet.push_str(&format!(r#"<c t="inlineStr"{style}><is><t xml:space="preserve">"#));
    for letter in text.chars() {
        match letter {
            '&' => sheet.push_str("&amp;"),
            '<' => sheet.push_str("&lt;"),
            '>' => sheet.push_str("&gt;"),
            '\t' | '\n' | '\r' => sheet.push(letter),
            '\u{fffe}' | '\u{ffff}' => {}
            letter if letter < ' ' => {}
            letter => sheet.push(letter),
        }
    }
    sheet.push_str("</t></is></c>");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use serde_json::json;

    use super::*;

    #[test]
    fn values_keep_their_kinds_and_text_is_escaped() {
        let answer = Answer {
            columns: vec!["a & b".into()],
            rows: [
                json!("=1+1"),
                json!(1.5),
                json!(true),
                Value::Null,
                json!("<x>\u{1}"),
                json!("-12345678901234567.89"),
                json!(1_234_567_890_123_456_789_i64),
                json!(-123_456_789_012_345_i64),
            ]
            .map(|value| vec![value])
            .into(),
            ..Answer::default()
        };
        let file = workbook(&answer).unwrap();
        let mut archive = zip::ZipArchive::new(Cursor::new(file)).unwrap();
        let mut sheet = String::new();
        archive.by_name("xl/worksheets/sheet1.xml").unwrap().read_to_string(&mut sheet).unwrap();
        for part in [
            "a &amp; b</t>",
            ">=1+1</t>",
            "<c><v>1.5<",
            r#"<c t="b"><v>1<"#,
            "<c/>",
            ">&lt;x&gt;<",
            ">-12345678901234567.89</t>",
            ">1234567890123456789</t>",
            "<v>-123456789012345<",
        ] {
            assert!(sheet.contains(part), "{part}: {sheet}");
        }
    }

    #[test]
    fn a_spreadsheet_finds_no_formula_in_a_csv_file_and_every_number() {
        let answer = Answer {
            columns: vec![r#"=HYPERLINK("http://x","y")"#.into()],
            rows: ["-12345678901234567.89", "+49 30 1234", "-1e5", "=1", "-inf", "@x", "a-b"]
                .map(|text| vec![json!(text)])
                .into(),
            ..Answer::default()
        };
        let written = String::from_utf8(csv(&answer).unwrap()).unwrap();
        let lines: Vec<&str> = written.lines().collect();
        let expected = [
            r#""'=HYPERLINK(""http://x"",""y"")""#,
            "-12345678901234567.89",
            "'+49 30 1234",
            "-1e5",
            "'=1",
            "'-inf",
            "'@x",
            "a-b",
        ];
        assert_eq!(lines, expected);
    }
}
