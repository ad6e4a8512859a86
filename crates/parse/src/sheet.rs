//! Excel's spreadsheets: a page per sheet, and on it the tables that its cells form.

mod regions;
mod units;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Cursor, Read as _, Write as _};
use std::ops::Range;

use calamine::{Data, DataRef, Reader as _, XlsxCellFormula, XlsxError};

pub(crate) use self::regions::Sheet;
use self::units::Units;
use crate::builder::Builder;
use crate::office::{CORE, Package, sheet_extras};
use crate::{Error, Format, Limits, Parsed, Warning};

/// Rows and columns of the largest sheet; a cell beyond them has a wrong name.
const MOST_ROWS: u32 = 1 << 20;
const MOST_COLUMNS: u32 = 1 << 14;

/// Sheets read from these bytes, possibly those of a repaired file.
type Book<'a> = calamine::Xlsx<Cursor<Cow<'a, [u8]>>>;

pub(crate) fn parse(bytes: &[u8], format: Format, limits: &Limits) -> Result<Parsed, Error> {
    match format {
        Format::Xls => old(bytes, limits),
        _ => packed(bytes, limits),
    }
}

fn refusal(error: &dyn std::fmt::Display, format: Format) -> Error {
    match error.to_string() {
        text if text.to_lowercase().contains("password") => Error::Password,
        text => Error::broken(format, text),
    }
}

/// Rejects a workbook without readable content; otherwise returns its text.
pub(crate) fn finished(builder: Builder, is_empty: bool) -> Result<Parsed, Error> {
    let reason = builder.warnings.iter().find(|warning| {
        matches!(warning, Warning::CellsUnread { .. } | Warning::PagesUnread { .. })
    });
    match reason {
        Some(reason) if is_empty => Err(Error::broken(builder.format(), reason)),
        None if is_empty => Err(Error::NoText),
        _ => Ok(builder.finish()),
    }
}

fn old(bytes: &[u8], limits: &Limits) -> Result<Parsed, Error> {
    let mut book =
        calamine::Xls::new(Cursor::new(bytes)).map_err(|error| refusal(&error, Format::Xls))?;
    let mut builder = Builder::new(Format::Xls);
    let names = book.sheet_names();
    limits.check_pages(names.len())?;
    let mut unread = Vec::new();
    let mut written = 0;
    for (name, number) in names.iter().zip(1u32..) {
        builder.page(number);
        builder.heading(2, name);
        let Ok(range) = book.worksheet_range(name) else {
            unread.push(number);
            continue;
        };
        let (top, left) = range.start().unwrap_or((0, 0));
        let mut sheet = Sheet::default();
        for (y, x, value) in range.used_cells() {
            let place = |first: u32, at: usize| first + u32::try_from(at).unwrap_or(MOST_ROWS);
            sheet.put(place(top, y), place(left, x), shown(value));
        }
        written += sheet.write(name, &mut builder, limits)?;
    }
    if !unread.is_empty() {
        builder.warnings.push(Warning::PagesUnread { pages: unread });
    }
    finished(builder, written == 0)
}

fn packed(bytes: &[u8], limits: &Limits) -> Result<Parsed, Error> {
    let mut package = Package::open(bytes, Format::Xlsx, limits)?;
    // What the archive says it unpacks to, since the reader below does not ask.
    limits.check_unpacked(bytes.len(), package.unpacks_to())?;
    let mut book = open(Cow::Borrowed(bytes))?;
    let mut builder = Builder::new(Format::Xlsx);
    (builder.title, builder.authors) = package.properties(CORE)?;
    let parts = package.sheet_parts()?;
    let names = book.sheet_names();
    limits.check_pages(names.len())?;
    let is_readable = |error: &XlsxError| matches!(error, XlsxError::NotAWorksheet(_));
    let is_refused = |name: &String| {
        let opened = caught(|| book.worksheet_cells_reader(name).map(drop));
        opened.is_err_and(|error| !is_readable(&error))
    };
    if names.iter().any(is_refused) || has_bad_indexes(bytes, &parts, limits) {
        book = open(Cow::Owned(repaired(bytes, &mut package, &parts)?))?;
    }
    let mut unread = Vec::new();
    let mut formulas = 0;
    let mut is_empty = true;
    for (name, number) in names.iter().zip(1u32..) {
        builder.page(number);
        builder.heading(2, name);
        let before = builder.len();
        match cells(&mut book, name, limits) {
            Ok(Cells { mut sheet, bad, reason, uncomputed }) => {
                formulas += uncomputed;
                if let Some(reason) = reason {
                    let sheet = name.clone();
                    builder.warnings.push(Warning::CellsUnread { sheet, count: bad, reason });
                }
                for merge in book.merge_cells_by_sheet_name(name).unwrap_or_default() {
                    sheet.merge(merge.start, merge.end);
                }
                sheet.write(name, &mut builder, limits)?;
            }
            // One that is a chart has no cells.
            Err(error) if is_readable(&error) => {}
            Err(_) => unread.push(number),
        }
        let part = parts.iter().find(|(own, _)| own == name).map(|(_, part)| part);
        if let Some(part) = part {
            sheet_extras(&mut package, part, &mut builder)?;
        }
        is_empty &= builder.len() == before;
    }
    if !unread.is_empty() {
        builder.warnings.push(Warning::PagesUnread { pages: unread });
    }
    if formulas > 0 {
        builder.warnings.push(Warning::FormulasWithoutResults { count: formulas });
    }
    builder.warnings.extend(package.warnings());
    finished(builder, is_empty)
}

fn open(bytes: Cow<'_, [u8]>) -> Result<Book<'_>, Error> {
    calamine::Xlsx::new(Cursor::new(bytes)).map_err(|error| refusal(&error, Format::Xlsx))
}

struct Cells {
    sheet: Sheet,
    /// Cells that could not be read, and the problem of the first one.
    bad: usize,
    reason: Option<String>,
    /// Formulas without a stored result.
    uncomputed: usize,
}

/// Reads a sheet cell by cell, so that neither a bad cell nor a distant one affects the rest.
fn cells(book: &mut Book<'_>, name: &str, limits: &Limits) -> Result<Cells, XlsxError> {
    let units = Units::read(book, name);
    let mut reader = caught(|| book.worksheet_cells_reader(name))?;
    let mut read = Cells { sheet: Sheet::default(), bad: 0, reason: None, uncomputed: 0 };
    let mut bytes = 0;
    loop {
        let reason = match caught(|| reader.next_cell_with_formula()) {
            Ok(None) => return Ok(read),
            Ok(Some(XlsxCellFormula { pos: (y, x), .. }))
                if y >= MOST_ROWS || x >= MOST_COLUMNS =>
            {
                "their names are beyond the largest sheet".to_owned()
            }
            Ok(Some(XlsxCellFormula { pos: (y, x), value, formula })) => {
                let text = match formula.filter(|_| matches!(value, DataRef::Empty)) {
                    Some(formula) if !formula.is_empty() => {
                        read.uncomputed += 1;
                        format!("={formula}")
                    }
                    _ => units.shown((y, x), &value.into()),
                };
                bytes += text.len();
                read.sheet.put(y, x, text);
                // The rest would be refused as too long.
                if bytes > limits.text_bytes {
                    return Ok(read);
                }
                continue;
            }
            Err(error @ (XlsxError::Xml(_) | XlsxError::XmlEof(_))) => {
                read.bad += 1;
                read.reason.get_or_insert(error.to_string());
                return Ok(read);
            }
            Err(error) => error.to_string(),
        };
        read.bad += 1;
        read.reason.get_or_insert(reason);
    }
}

/// Asks the reader; a debug build of it panics at numbers that are too large.
fn caught<T>(read: impl FnOnce() -> Result<T, XlsxError>) -> Result<T, XlsxError> {
    let read = std::panic::AssertUnwindSafe(read);
    std::panic::catch_unwind(read).unwrap_or(Err(XlsxError::Unexpected("a number is too large")))
}

/// Finds the strings' indexes that are no numbers: the reader takes each for the first string.
fn bad_indexes(sheet: &str) -> impl Iterator<Item = Range<usize>> {
    let strings = sheet.match_indices("t=\"s\"").chain(sheet.match_indices("t='s'"));
    strings.filter_map(|(at, _)| {
        let cell = at + sheet[at..].find('>')?;
        if sheet[..cell].ends_with('/') {
            return None;
        }
        // Not beyond the next cell, so that a hostile sheet is read once.
        let rest = &sheet[cell..];
        let rest = &rest[..rest.find("<c ").unwrap_or(rest.len())];
        let end = cell + rest.find("c>")?;
        let start = cell + sheet[cell..end].find("v>")? + 2;
        let index = sheet[start..].split('<').next()?;
        let is_number = index.bytes().all(|digit| digit.is_ascii_digit()) && index.len() < 10;
        (!is_number).then_some(start..start + index.len())
    })
}

fn has_bad_indexes(bytes: &[u8], parts: &[(String, String)], limits: &Limits) -> bool {
    let Ok(mut archive) = zip::ZipArchive::new(Cursor::new(bytes)) else { return false };
    parts.iter().any(|(_, part)| {
        let mut sheet = Vec::new();
        let file = archive.by_name(part).map(|file| file.take(limits.unpacked_bytes as u64));
        file.is_ok_and(|mut file| file.read_to_end(&mut sheet).is_ok())
            && bad_indexes(&String::from_utf8_lossy(&sheet)).next().is_some()
    })
}

/// Writes the file again without its sheets' dimensions, because the reader rejects a whole sheet with wrong ones, and
/// with indexes that it rejects in place of those that it misreads.
fn repaired(
    bytes: &[u8],
    package: &mut Package<'_>,
    parts: &[(String, String)],
) -> Result<Vec<u8>, Error> {
    let broken = |error: zip::result::ZipError| Error::broken(Format::Xlsx, error);
    let mut old = zip::ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    let mut new = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..old.len() {
        let file = old.by_index_raw(index).map_err(broken)?;
        let name = file.name().map_err(broken)?.into_owned();
        let is_sheet = parts.iter().any(|(_, part)| *part == name);
        let text = if is_sheet { package.text(&name)? } else { None };
        let Some(mut text) = text else {
            new.raw_copy_file(file).map_err(broken)?;
            continue;
        };
        let cells = text.find("sheetData").unwrap_or(text.len());
        let start = text[..cells].find("dimension").and_then(|at| text[..at].rfind('<'));
        let end = start.and_then(|start| Some(start + text[start..cells].find("/>")? + 2));
        if let (Some(start), Some(end)) = (start, end) {
            text.replace_range(start..end, "");
        }
        let bad: BTreeMap<usize, usize> =
            bad_indexes(&text).map(|range| (range.start, range.end)).collect();
        let mut repaired = String::with_capacity(text.len());
        let mut read = 0;
        for (start, end) in bad {
            repaired.push_str(&text[read..start]);
            read = end;
            let number = text[start..end].trim().parse::<f64>().ok();
            let whole = number.filter(|number| number.fract() == 0.0 && *number >= 0.0);
            repaired.push_str(&whole.unwrap_or(f64::MAX).min(999_999_999.0).to_string());
        }
        repaired.push_str(&text[read..]);
        let options = zip::write::SimpleFileOptions::default();
        new.start_file(name, options).map_err(broken)?;
        new.write_all(repaired.as_bytes()).map_err(|error| Error::broken(Format::Xlsx, error))?;
    }
    Ok(new.finish().map_err(broken)?.into_inner())
}

fn shown(value: &Data) -> String {
    match value {
        Data::Empty => String::new(),
        Data::String(text) => crate::builder::one_line(text),
        Data::Int(number) => number.to_string(),
        Data::Float(number) => number_text(*number),
        Data::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Data::DateTime(time) => date(time),
        Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
        Data::Error(error) => error.to_string(),
    }
}

/// Writes a number with the 15 digits that spreadsheets show; the further ones of a fraction are errors of rounding.
pub(crate) fn number_text(number: f64) -> String {
    let rounded = format!("{number:.14e}").parse().unwrap_or(number);
    if number.fract() == 0.0 { number } else { rounded }.to_string()
}

fn date(time: &calamine::ExcelDateTime) -> String {
    if time.is_duration() {
        let seconds = (time.as_f64() * 86_400.0).round() as i64;
        let sign = if seconds < 0 { "-" } else { "" };
        let seconds = seconds.unsigned_abs();
        return format!("{sign}{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    let date = format!("{year:04}-{month:02}-{day:02}");
    let hour = format!("{hour:02}:{minute:02}:{second:02}");
    // A day without an hour, and an hour of no day.
    match time.as_f64() {
        days if days.fract() == 0.0 => date,
        days if days < 1.0 => hour,
        _ => format!("{date} {hour}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_durations_are_written_as_a_reader_sees_them() {
        for (number, shown) in [
            (0.1 + 0.2, "0.3"),
            (1.1 * 3.0, "3.3"),
            (-299.999_999_999_999_94, "-300"),
            (0.1, "0.1"),
            (1e-7 / 3.0, "0.0000000333333333333333"),
            (1_234_567_890_123_456.0, "1234567890123456"),
            (12.5, "12.5"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number_text(number), shown);
        }
        let duration = |days: f64| {
            let kind = calamine::ExcelDateTimeType::TimeDelta;
            date(&calamine::ExcelDateTime::new(days, kind, false))
        };
        assert_eq!(duration(-1.5 / 24.0), "-1:30:00");
        assert_eq!(duration(-1.0 / 1440.0), "-0:01:00");
        assert_eq!(duration(30.5 / 24.0), "30:30:00");
        assert_eq!(duration(0.0), "0:00:00");
        let time = |days: f64| {
            let kind = calamine::ExcelDateTimeType::DateTime;
            date(&calamine::ExcelDateTime::new(days, kind, false))
        };
        assert_eq!(time(0.5), "12:00:00");
        assert_eq!(time(45_000.0), "2023-03-15");
        assert_eq!(time(45_000.25), "2023-03-15 06:00:00");
    }

    #[test]
    fn an_invalid_spreadsheet_is_reported_as_broken() {
        let error = parse(b"PK\x03\x04rubbish", Format::Xlsx, &Limits::default()).unwrap_err();
        assert!(matches!(error, Error::Broken { format: Format::Xlsx, .. }), "{error}");
    }
}
