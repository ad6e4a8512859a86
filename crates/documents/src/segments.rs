//! The text of a document, stored in segments of one size: a place is read without the text before it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use sqlx::AssertSqlSafe;

use crate::{Error, Library, Result};
use perihelion_database::{Row, Transaction, query};

/// Characters of a segment; the last one of a text is shorter. The migrations cut earlier texts in the same way.
const SEGMENT: usize = 16_384;

/// Segments that are written by one statement.
const AT_ONCE: usize = 64;

/// A part of a document's text, counted in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub document: String,
    pub start: usize,
    pub end: usize,
}

impl Range {
    fn segments(&self) -> std::ops::Range<usize> {
        self.start / SEGMENT..self.end.div_ceil(SEGMENT)
    }
}

/// Segments by the ids of their documents and their numbers.
type Segments = BTreeMap<(String, usize), String>;

impl Library {
    pub async fn body(&self, id: &str) -> Result<String> {
        let read = self.query(
            "SELECT body FROM document_segment WHERE tenant = $1 AND owner = $2 AND id = $3 ORDER BY number",
        );
        let read = read.bind(id);
        let rows = self.database().fetch_all(&read).await?;
        if rows.is_empty() {
            return Err(Error::Unknown(id.to_owned()));
        }
        let mut body = String::new();
        for row in &rows {
            body.push_str(&row.get::<String>(0)?);
        }
        Ok(body)
    }

    /// Returns the texts of ranges, in their order; `None` for a range outside of the document.
    pub(crate) async fn texts(&self, ranges: &[Range]) -> Result<Vec<Option<String>>> {
        let wanted = ranges
            .iter()
            .flat_map(|range| range.segments().map(|number| (range.document.as_str(), number)));
        let wanted: BTreeSet<(&str, usize)> = wanted.collect();
        let segments =
            if wanted.is_empty() { Segments::new() } else { self.segments(&wanted).await? };
        Ok(ranges.iter().map(|range| cut(&segments, range)).collect())
    }

    async fn segments(&self, wanted: &BTreeSet<(&str, usize)>) -> Result<Segments> {
        let wanted = wanted.iter().copied();
        let rows = self.numbered("document_segment", "t.body", wanted).await?;
        let segment = |row: &Row| {
            let number = usize::try_from(row.get::<i64>(1)?).unwrap_or(usize::MAX);
            Ok(((row.get(0)?, number), row.get(2)?))
        };
        rows.iter().map(segment).collect()
    }

    /// Reads the wanted rows of a table `t` by their documents and numbers: both, and then the columns.
    pub(crate) async fn numbered<'a>(
        &self,
        table: &str,
        columns: &str,
        wanted: impl Iterator<Item = (&'a str, usize)>,
    ) -> Result<Vec<Row>> {
        let database = self.database();
        let listed = database.dialect().pick(
            "(SELECT value ->> 'id' AS id, value ->> 'number' AS number FROM json_each($3)) w",
            "jsonb_to_recordset($3) AS w (id text, number bigint)",
        );
        let row = "t.tenant = $1 AND t.owner = $2 AND t.id = w.id AND t.number = w.number";
        let row = database.dialect().look_up(table, "t", row);
        let sql = format!("SELECT t.id, t.number, {columns} FROM {listed} {row}");
        let wanted: Vec<Json> =
            wanted.map(|(id, number)| json!({ "id": id, "number": number })).collect();
        let read = self.query(AssertSqlSafe(sql)).bind(json!(wanted));
        Ok(database.fetch_all(&read).await?)
    }

    /// Writes a text in place of the former one; segments that are as they were are not written again.
    pub(crate) async fn write_segments(
        &self,
        transaction: &mut Transaction<'_>,
        id: &str,
        text: &str,
    ) -> Result<()> {
        let sql = transaction.dialect().pick(
        "INSERT INTO document_segment (tenant, owner, id, number, body)
         SELECT $1, $2, $3, value ->> 'number', value ->> 'body' FROM json_each($4) WHERE true
         ON CONFLICT (tenant, owner, id, number) DO UPDATE SET body = excluded.body
         WHERE document_segment.body <> excluded.body",
        "INSERT INTO document_segment (tenant, owner, id, number, body)
         SELECT $1, $2, $3, number, body FROM jsonb_to_recordset($4) AS listed (number bigint, body text)
         ON CONFLICT (tenant, owner, id, number) DO UPDATE SET body = excluded.body
         WHERE document_segment.body <> excluded.body",
    );
        let segments: Vec<&str> = divided(text).collect();
        let numbered: Vec<(usize, &str)> = segments.iter().copied().enumerate().collect();
        for part in numbered.chunks(AT_ONCE) {
            let part = part.iter().map(|(number, body)| json!({ "number": number, "body": body }));
            let part: Vec<Json> = part.collect();
            let insert = self.query(AssertSqlSafe(sql));
            transaction.execute(&insert.bind(id).bind(json!(part))).await?;
        }
        let delete = query(
            "DELETE FROM document_segment WHERE tenant = $1 AND owner = $2 AND id = $3 AND number >= $4",
        );
        let past = i64::try_from(segments.len()).unwrap_or(i64::MAX);
        let delete = delete.bind(self.scope.tenant()).bind(self.scope.owner()).bind(id).bind(past);
        transaction.execute(&delete).await?;
        Ok(())
    }
}

fn cut(segments: &Segments, range: &Range) -> Option<String> {
    let mut cut = String::new();
    for number in range.segments() {
        let segment = segments.get(&(range.document.clone(), number))?;
        let first = number * SEGMENT;
        let start = range.start.max(first) - first;
        let end = range.end.min(first + SEGMENT) - first;
        cut.push_str(part(segment, start, end)?);
    }
    (range.start <= range.end).then_some(cut)
}

fn divided(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(SEGMENT).map_or(rest.len(), |(at, _)| at);
        let (segment, after) = rest.split_at(end);
        rest = after;
        (!segment.is_empty()).then_some(segment)
    })
}

/// Turns places in bytes, which the parser counts, into places in characters, which readers count; they must be asked for in ascending order for speed.
pub(crate) struct Places<'a> {
    text: &'a str,
    byte: usize,
    character: usize,
}

impl<'a> Places<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, byte: 0, character: 0 }
    }

    /// Returns the character position of a byte position, which is on a character boundary.
    pub fn character(&mut self, byte: usize) -> usize {
        if byte < self.byte {
            self.byte = 0;
            self.character = 0;
        }
        let between = self.text.get(self.byte..byte).unwrap_or_default();
        self.character += between.chars().count();
        self.byte = byte;
        self.character
    }

    /// Returns the byte position of a character position; `None` beyond the end of the text.
    pub fn byte(&mut self, character: usize) -> Option<usize> {
        if character < self.character {
            self.byte = 0;
            self.character = 0;
        }
        let rest = self.text.get(self.byte..)?;
        let mut steps = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
        self.byte += steps.nth(character - self.character)?;
        self.character = character;
        Some(self.byte)
    }

    /// Returns the part between two character positions; `None` if it is outside of the text.
    pub fn part(&mut self, start: usize, end: usize) -> Option<&'a str> {
        let first = self.byte(start)?;
        let last = if end < start { return None } else { self.byte(end)? };
        self.text.get(first..last)
    }
}

/// Returns the part of a text between two character positions; `None` if it is outside of it.
pub(crate) fn part(text: &str, start: usize, end: usize) -> Option<&str> {
    Places::new(text).part(start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_is_cut_from_the_segments_that_it_touches_alone() {
        let text: String =
            (0..3 * SEGMENT + 7).map(|n| if n % 3 == 0 { 'ü' } else { 'x' }).collect();
        let all: Vec<&str> = divided(&text).collect();
        assert_eq!(all.len(), 4);
        assert_eq!(all.concat(), text);
        let past = 3 * SEGMENT + 7;
        for (start, end) in [
            (0, 0),
            (0, 1),
            (SEGMENT - 1, SEGMENT + 1),
            (SEGMENT, 2 * SEGMENT),
            (5, past),
            (past, past),
            (past - 1, past),
        ] {
            let range = Range { document: "d".to_owned(), start, end };
            let touched = range.segments().map(|at| (("d".to_owned(), at), all[at].to_owned()));
            let wanted: String = text.chars().skip(start).take(end - start).collect();
            assert_eq!(cut(&touched.collect(), &range), Some(wanted), "{start}..{end}");
        }
        let beyond = Range { document: "d".to_owned(), start: 3, end: past + 1 };
        let there =
            all.iter().enumerate().map(|(at, one)| (("d".to_owned(), at), (*one).to_owned()));
        assert_eq!(cut(&there.collect(), &beyond), None);
    }
}

#[cfg(test)]
mod text_tests {
    use super::*;

    #[test]
    fn characters_are_counted_and_not_bytes() {
        let text = "größer € 10";
        let byte = text.find('€').unwrap();
        let mut places = Places::new(text);
        assert_eq!(places.character(byte), 7);
        assert_eq!(places.byte(7), Some(byte));
        assert_eq!(places.character(0), 0);
        assert_eq!(part(text, 7, 8), Some("€"));
        assert_eq!(part(text, 0, 11), Some(text));
        assert_eq!(part(text, 11, 11), Some(""));
        assert_eq!(part(text, 0, 12), None);
        assert_eq!(part(text, 3, 2), None);
    }
}
