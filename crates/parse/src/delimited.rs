//! CSV and its relatives: one table, whatever the delimiter.

use crate::builder::{Builder, Grid};
use crate::{Error, Format, Limits, Parsed, Warning};

const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Records that are looked at to find the delimiter.
const SAMPLE: usize = 50;

pub(crate) fn parse(bytes: &[u8], name: &str, limits: &Limits) -> Result<Parsed, Error> {
    let decoded = crate::encoding::decode(bytes)?;
    limits.check_text(decoded.text.len())?;
    let text = decoded.text;
    let delimiter = match name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()) {
        Some(ending) if ending == "tsv" || ending == "tab" => b'\t',
        _ => delimiter(&text),
    };
    let mut grid = Grid::default();
    for record in reader(&text, delimiter).records() {
        let record = record.map_err(|error| Error::broken(Format::Csv, error))?;
        grid.rows.push(record.iter().map(str::to_owned).collect());
    }
    let width = grid.rows.first().map_or(0, Vec::len);
    let uneven = grid.rows.iter().filter(|row| row.len() != width).count();
    let mut builder = Builder::new(Format::Csv);
    builder.warnings.extend(decoded.warning);
    if uneven > 0 {
        builder.warnings.push(Warning::UnevenRecords { count: uneven });
    }
    builder.table(&grid);
    Ok(builder.finish())
}

fn reader(text: &str, delimiter: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(text.as_bytes())
}

/// Returns the delimiter that gives the most fields with the least disagreement.
fn delimiter(text: &str) -> u8 {
    let score = |delimiter: u8| {
        let records = reader(text, delimiter).into_records();
        let widths: Vec<usize> =
            records.take(SAMPLE).flatten().map(|record| record.len()).collect();
        let Some(&first) = widths.first() else { return 0 };
        let alike = widths.iter().filter(|width| **width == first).count();
        if first < 2 { 0 } else { alike * 1000 / widths.len() * 100 + first.min(99) }
    };
    // The first of equals, so that a comma goes before the rest.
    let mut best = (0, DELIMITERS[0]);
    for delimiter in DELIMITERS {
        let score = score(delimiter);
        if score > best.0 {
            best = (score, delimiter);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_found_and_cells_keep_theirs() {
        for text in ["a,b\n1,\"2, 3\"\n", "a;b\n1;2, 3\n", "a|b\n1|2, 3\n", "a\tb\n1\t2, 3\n"] {
            let parsed = parse(text.as_bytes(), "x.csv", &Limits::default()).unwrap();
            assert_eq!(parsed.text, "| a | b |\n| - | - |\n| 1 | 2, 3 |\n", "{text:?}");
            assert_eq!(parsed.tables.len(), 1);
        }
    }

    #[test]
    fn uneven_records_are_kept_and_said() {
        let parsed = parse(b"a,b\n1\n1,2,3\n", "x.csv", &Limits::default()).unwrap();
        assert_eq!(parsed.warnings, [Warning::UnevenRecords { count: 2 }]);
        assert!(parsed.text.contains("| 1 | 2 | 3 |"));
    }
}
