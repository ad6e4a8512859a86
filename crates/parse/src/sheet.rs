//! Spreadsheets: a page per sheet, and on it the tables that its cells form.

mod regions;

use std::io::Cursor;

use calamine::{Data, Reader, Sheets};

use self::regions::Region;
use crate::builder::{Builder, Grid};
use crate::office::{Package, sheet_extras};
use crate::{Error, Format, Limits, Parsed};

/// Most cells of a sheet; more are no reading matter.
const MOST_CELLS: u64 = 4_000_000;

pub(crate) fn parse(bytes: &[u8], format: Format, limits: &Limits) -> Result<Parsed, Error> {
    let broken = |error: calamine::Error| match error.to_string() {
        text if text.to_lowercase().contains("password") => Error::Password,
        text => Error::broken(format, text),
    };
    let mut package = match format {
        Format::Xlsx => Some(Package::open(bytes, format, limits)?),
        _ => None,
    };
    check_size(bytes, format, limits)?;
    let mut book = open(bytes, format).map_err(broken)?;
    let mut builder = Builder::new(format);
    if let Some(package) = &mut package {
        let properties = package.properties()?;
        (builder.title, builder.authors) = (properties.title, properties.authors);
    }
    let parts = match &mut package {
        Some(package) => sheet_parts(package)?,
        None => Vec::new(),
    };
    let names = book.sheet_names();
    limits.check_pages(names.len())?;
    for (index, name) in names.iter().enumerate() {
        builder.page(u32::try_from(index + 1).unwrap_or(u32::MAX));
        builder.heading(2, name);
        // A sheet that is one chart has no cells.
        if let Ok(range) = book.worksheet_range(name) {
            let (height, width) = range.get_size();
            if height as u64 * width as u64 > MOST_CELLS * 16 {
                return Err(Error::broken(format, format!("the sheet is too large: {name}")));
            }
            let merged = match &mut book {
                Sheets::Xlsx(book) => book.merge_cells_by_sheet_name(name).ok(),
                _ => None,
            };
            let sheet = regions::Sheet::new(&range, &merged.unwrap_or_default());
            for region in sheet.regions() {
                write(&sheet, &region, &mut builder);
                limits.check_text(builder.len())?;
            }
        }
        let part = parts.iter().find(|(own, _)| own == name).map(|(_, part)| part);
        if let (Some(package), Some(part)) = (&mut package, part) {
            sheet_extras(package, part, &mut builder)?;
        }
    }
    Ok(builder.finish())
}

fn open(bytes: &[u8], format: Format) -> Result<Sheets<Cursor<&[u8]>>, calamine::Error> {
    let cursor = Cursor::new(bytes);
    Ok(match format {
        Format::Xls => Sheets::Xls(calamine::Xls::new(cursor)?),
        Format::Ods => Sheets::Ods(calamine::Ods::new(cursor)?),
        _ => Sheets::Xlsx(calamine::Xlsx::new(cursor)?),
    })
}

/// Checks what an archive says it unpacks to, since the reader below does not.
fn check_size(bytes: &[u8], format: Format, limits: &Limits) -> Result<(), Error> {
    if format == Format::Xls {
        return Ok(());
    }
    let archive =
        zip::ZipArchive::new(Cursor::new(bytes)).map_err(|error| Error::broken(format, error))?;
    let unpacked = archive.decompressed_size().unwrap_or(0);
    limits.check_unpacked(bytes.len(), u64::try_from(unpacked).unwrap_or(u64::MAX))
}

/// Returns the names of the sheets and their parts.
fn sheet_parts(package: &mut Package<'_>) -> Result<Vec<(String, String)>, Error> {
    package.sheet_parts()
}

fn write(sheet: &regions::Sheet, region: &Region, builder: &mut Builder) {
    let rows = (region.top..=region.bottom).map(|y| {
        (region.left..=region.right).map(|x| sheet.cell(y, x).to_owned()).collect::<Vec<_>>()
    });
    let grid = Grid { rows: rows.collect() };
    match grid.rows.as_slice() {
        [row] if row.len() == 1 => builder.paragraph(&row[0]),
        _ => builder.table(&grid),
    }
}

/// Shows a cell as a reader sees it.
fn shown(value: &Data) -> String {
    match value {
        Data::Empty => String::new(),
        Data::String(text) => crate::builder::one_line(text),
        Data::Int(number) => number.to_string(),
        Data::Float(number) => number.to_string(),
        Data::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Data::DateTime(time) => date(time),
        Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
        Data::Error(error) => error.to_string(),
    }
}

fn date(time: &calamine::ExcelDateTime) -> String {
    if time.is_duration() {
        let seconds = (time.as_f64() * 86_400.0).round() as i64;
        return format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_spreadsheet_is_named_as_broken() {
        let error = parse(b"PK\x03\x04rubbish", Format::Xlsx, &Limits::default()).unwrap_err();
        assert!(matches!(error, Error::Broken { format: Format::Xlsx, .. }), "{error}");
    }
}
