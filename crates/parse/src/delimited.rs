//! CSV and its relatives: one table, whatever the delimiter.

use std::borrow::Cow;

use crate::builder::Builder;
use crate::{Error, Format, Limits, Parsed, Warning};

const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The score of a delimiter that divides all records alike, without the number of fields.
const ALL_ALIKE: usize = 100_000;

/// Records that are looked at to find the delimiter.
const SAMPLE: usize = 50;

pub(crate) fn parse(bytes: &[u8], name: &str, limits: &Limits) -> Result<Parsed, Error> {
    let decoded = crate::encoding::decode(bytes)?;
    limits.check_text(decoded.text.len())?;
    let text = decoded.text.as_str();
    // Files for Excel can name the delimiter in a separate line.
    let (first, after) = text.split_once('\n').unwrap_or((text, ""));
    let first = first.trim_start_matches([' ', '"']);
    let is_declared = first.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("sep="));
    let declared = first.get(4..).filter(|_| is_declared).and_then(|sign| {
        let sign = sign.strip_prefix("\\t").map_or(sign, |_| "\t");
        sign.bytes().next().filter(u8::is_ascii)
    });
    let text = if is_declared { after } else { text };
    let delimiter = match name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()) {
        Some(ending) if declared.is_none() && (ending == "tsv" || ending == "tab") => b'\t',
        _ => declared.unwrap_or_else(|| delimiter(text)),
    };
    let text = unspaced(text, delimiter);
    let (rows, lone) = records(&unescaped(&text, delimiter), delimiter)?;
    let width = rows.first().map_or(0, Vec::len);
    let uneven = rows.iter().filter(|row| row.len() != width).count();
    let mut builder = Builder::new(Format::Csv);
    builder.warnings.extend(decoded.warnings);
    if uneven > 0 {
        builder.warnings.push(Warning::UnevenRecords { count: uneven });
    }
    if lone > 0 {
        builder.warnings.push(Warning::LoneQuotes { count: lone });
    }
    builder.table(&rows);
    Ok(builder.finish())
}

/// Removes the space that some programs write before each quoted field, so that the quotes count.
fn unspaced(text: &str, delimiter: u8) -> Cow<'_, str> {
    let delimiter = char::from(delimiter);
    let spaced = format!("{delimiter} \"");
    let is_quoted =
        text.starts_with('"') || text.contains("\n\"") || text.contains(&format!("{delimiter}\""));
    if is_quoted || !text.contains(&spaced) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(&spaced, &format!("{delimiter}\"")))
}

/// Doubles the quotation marks that some programs write after a backslash, if the text is well formed only so.
fn unescaped(text: &str, delimiter: u8) -> Cow<'_, str> {
    if !text.contains("\\\"") || !is_malformed(text, delimiter) {
        return Cow::Borrowed(text);
    }
    let mut doubled = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut is_quoted = false;
    let mut is_first = true;
    while let Some(c) = chars.next() {
        let next =
            if c == '\\' && is_quoted { chars.next_if(|c| "\\\"".contains(*c)) } else { None };
        is_quoted ^= c == '"' && (is_quoted || is_first);
        is_first = c == char::from(delimiter) || c == '\n';
        match next {
            Some('"') => doubled.push_str("\"\""),
            _ => doubled.push(c),
        }
    }
    if is_quoted || is_malformed(&doubled, delimiter) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(doubled)
}

/// Reads the records, and counts the lines with a quotation mark that is closed in a later line by mistake.
fn records(text: &str, delimiter: u8) -> Result<(Vec<Vec<String>>, usize), Error> {
    let broken = |error| Error::broken(Format::Csv, error);
    let fields = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut lone = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let mut reader = builder(delimiter).from_reader(rest.as_bytes());
        let mut record = csv::StringRecord::new();
        let mut start = 0;
        let begun = rest;
        rest = "";
        while reader.read_record(&mut record).map_err(broken)? {
            let end = usize::try_from(reader.position().byte()).unwrap_or(begun.len());
            let own = begun[start..end].trim_matches('\n');
            let width = rows.first().map_or(0, Vec::len);
            if own.contains('\n') && is_swallowed(own, end == begun.len(), width, delimiter) {
                let (line, after) = own.split_once('\n').unwrap_or((own, ""));
                lone += 1;
                rows.push(alone(line, delimiter));
                let at = begun.len() - begun[start..].trim_start_matches('\n').len();
                rest = &begun[at + own.len() - after.len()..];
                break;
            }
            rows.push(fields(&record));
            start = end;
        }
    }
    Ok((rows, lone))
}

/// Returns whether lines that were read as one record are separate records, except for a lone quotation mark.
fn is_swallowed(lines: &str, is_last: bool, width: usize, delimiter: u8) -> bool {
    if is_last && lines.matches('"').count() % 2 == 1 {
        return true;
    }
    width > 1
        && is_malformed(lines, delimiter)
        && lines.lines().all(|line| alone(line, delimiter).len() == width)
}

/// Returns whether a quotation mark within a quoted field neither ends it nor is doubled: it begins another one.
fn is_malformed(lines: &str, delimiter: u8) -> bool {
    let mut bytes = lines.bytes().peekable();
    let mut is_quoted = false;
    let mut is_first = true;
    while let Some(byte) = bytes.next() {
        let next = bytes.peek().copied();
        match byte {
            b'"' if is_quoted && next == Some(b'"') => drop(bytes.next()),
            b'"' if is_quoted => {
                is_quoted = false;
                if next.is_some_and(|next| next != delimiter && next != b'\n') {
                    return true;
                }
            }
            b'"' if is_first => is_quoted = true,
            _ => {}
        }
        is_first = !is_quoted && (byte == delimiter || byte == b'\n');
    }
    false
}

/// Reads a line separately; a quotation mark that is never closed in it is a letter.
fn alone(line: &str, delimiter: u8) -> Vec<String> {
    let is_lone = line.matches('"').count() % 2 == 1;
    let mut reader =
        builder(delimiter).quoting(!is_lone).from_reader(line.as_bytes()).into_records();
    let record = reader.next().and_then(Result::ok);
    record.iter().flatten().map(str::to_owned).collect()
}

fn builder(delimiter: u8) -> csv::ReaderBuilder {
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).delimiter(delimiter);
    builder
}

/// Returns the delimiter that gives the most fields with the least disagreement.
fn delimiter(text: &str) -> u8 {
    let score = |delimiter: u8| {
        let records = builder(delimiter).from_reader(text.as_bytes()).into_records();
        let sample = records.take(SAMPLE).flatten();
        let widths: Vec<usize> = sample.map(|record| record.len()).collect();
        let alike = |width: usize| widths.iter().filter(|one| **one == width).count();
        // A title can precede the table.
        let score = |width: usize| alike(width) * ALL_ALIKE / widths.len() + width.min(99);
        widths.iter().filter(|width| **width > 1).map(|width| score(*width)).max().unwrap_or(0)
    };
    // The first of equals, so that a comma goes before the rest.
    let mut best = (0, DELIMITERS[0]);
    for delimiter in DELIMITERS {
        let score = score(delimiter);
        let is_decimal = best.1 == b',' && score > ALL_ALIKE && is_decimal_comma(text);
        if score > best.0 || is_decimal {
            best = (score, delimiter);
        }
    }
    best.1
}

/// Returns whether each comma of the first records is part of a number.
fn is_decimal_comma(text: &str) -> bool {
    text.lines().take(SAMPLE).all(|line| {
        let parts: Vec<&str> = line.split(',').collect();
        let is_digit = |c: char| c.is_ascii_digit();
        parts.windows(2).all(|pair| pair[0].ends_with(is_digit) && pair[1].starts_with(is_digit))
    })
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
    fn a_comma_within_numbers_is_no_delimiter_if_another_sign_is() {
        for (text, expected) in [
            ("1,5;2,5\n3,5;4,5\n", "| 1,5 | 2,5 |\n| - | - |\n| 3,5 | 4,5 |\n"),
            ("1,50;2,50;3,50\n", "| 1,50 | 2,50 | 3,50 |\n| - | - | - |\n"),
            ("1,5\t2,5\n3\t4,5\n", "| 1,5 | 2,5 |\n| - | - |\n| 3 | 4,5 |\n"),
            ("1,2,3\n4,5,6\n", "| 1 | 2 | 3 |\n| - | - | - |\n| 4 | 5 | 6 |\n"),
            ("a,1;2\nb,3;4\n", "| a | 1;2 |\n| - | - |\n| b | 3;4 |\n"),
        ] {
            let parsed = parse(text.as_bytes(), "x.csv", &Limits::default()).unwrap();
            assert_eq!(parsed.text, expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_that_declares_the_delimiter_is_no_record() {
        for text in [
            "sep=;\na;b\n1;2, 3\n",
            "sep=|\r\na|b\r\n1|2, 3\r\n",
            "\u{FEFF}sep=\t\na\tb\n1\t2, 3\n",
            "SEP=;\na;b\n1;2, 3\n",
            "\"sep=;\"\na;b\n1;2, 3\n",
            "sep=\\t\na\tb\n1\t2, 3\n",
            "sep=§\na;b\n1;2, 3\n",
        ] {
            let parsed = parse(text.as_bytes(), "x.csv", &Limits::default()).unwrap();
            assert_eq!(parsed.text, "| a | b |\n| - | - |\n| 1 | 2, 3 |\n", "{text:?}");
        }
    }

    #[test]
    fn a_space_before_a_quoted_field_and_a_title_above_the_table_are_no_part_of_them() {
        for (text, expected) in [
            ("a, \"b, c\"\n1, \"2, 3\"\n", "| a | b, c |\n| - | - |\n| 1 | 2, 3 |\n"),
            ("a,\"b, \"\n1,\"2\"\n", "| a | b, |\n| - | - |\n| 1 | 2 |\n"),
            (
                "Report, 2024\n\nName;Total\nA;1\nB;2\n",
                "| Report, 2024 |  |\n| - | - |\n| Name | Total |\n| A | 1 |\n| B | 2 |\n",
            ),
        ] {
            let parsed = parse(text.as_bytes(), "x.csv", &Limits::default()).unwrap();
            assert_eq!(parsed.text, expected, "{text:?}");
        }
    }

    /// Marks after a backslash, and backslashes before a mark that ends its field.
    #[test]
    fn a_quotation_mark_is_doubled_or_written_after_a_backslash() {
        for (text, expected) in [
            ("a,b\n1,\"say \\\"hi\\\", ok\"\n2,x\n", "| 1 | say \"hi\", ok |\n| 2 | x |"),
            ("a,b\n\"\",\"\\\"x\\\"\"\n2,\"C:\\\\dir\\\\\"\n", "|  | \"x\" |\n| 2 | C:\\dir\\ |"),
            ("a;b\n1;\"so \\\"one\ntwo\\\"\"\n2;x\\y\n", "| 1 | so \"one two\" |\n| 2 | x\\y |"),
            ("a,b\n1,\"C:\\dir\\\"\n\"D:\\\",2\n", "| 1 | C:\\dir\\ |\n| D:\\ | 2 |"),
            ("a,b\n1,\"a \\\"\"b\"\"\"\n", "| 1 | a \\\"b\" |"),
        ] {
            let parsed = parse(text.as_bytes(), "x.csv", &Limits::default()).unwrap();
            let rows: Vec<&str> = parsed.text.lines().skip(2).collect();
            assert_eq!(rows.join("\n"), expected, "{text:?}");
            assert_eq!(parsed.warnings, [], "{text:?}");
        }
    }

    /// Lone quotation marks in each place, and those that are none.
    #[test]
    fn a_lone_quotation_mark_costs_no_record() {
        let rows = |text: &str| {
            let parsed = parse(text.as_bytes(), "x.csv", &Limits::default()).unwrap();
            let rows: Vec<String> = parsed.text.lines().skip(2).map(str::to_owned).collect();
            (rows, parsed.warnings)
        };
        let lone = |count| vec![Warning::LoneQuotes { count }];
        let (read, warnings) = rows("a,b\n1,\"5 inch\n2,y\n3,z\n");
        assert_eq!(read, ["| 1 | \"5 inch |", "| 2 | y |", "| 3 | z |"]);
        assert_eq!(warnings, lone(1));
        let (read, warnings) = rows("a,b\n\"1,x\n2,\"y, or z\"\n3,z\n");
        assert_eq!(read, ["| \"1 | x |", "| 2 | y, or z |", "| 3 | z |"]);
        assert_eq!(warnings, lone(1));
        let (read, warnings) = rows("a,b\n1,\"x\n2,\"y\n3,z\n4,\"w\n");
        assert_eq!(read.len(), 4, "{read:?}");
        assert_eq!(warnings, lone(2));
        // In the middle of a field it is a letter, and lines within a field are one record.
        let (read, warnings) =
            rows("a,b\n1,5\" pipe\n2,\"one\ntwo, three\"\n3,\"say \"\"so\"\"\"\n");
        assert_eq!(read, ["| 1 | 5\" pipe |", "| 2 | one two, three |", "| 3 | say \"so\" |"]);
        assert_eq!(warnings, []);
    }

    #[test]
    fn uneven_records_are_preserved_and_reported() {
        let parsed = parse(b"a,b\n1\n1,2,3\n", "x.csv", &Limits::default()).unwrap();
        assert_eq!(parsed.warnings, [Warning::UnevenRecords { count: 2 }]);
        assert!(parsed.text.contains("| 1 | 2 | 3 |"));
    }
}
