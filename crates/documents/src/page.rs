//! The pages of a document, to check citations.

use std::collections::BTreeSet;

use perihelion_database::{Row, Transaction};
use perihelion_recall::words::{related, split};
use serde::Serialize;
use serde_json::{Value as Json, json};
use sqlx::AssertSqlSafe;

use crate::segments::Places;
use crate::segments::Range;
use crate::{Error, Library, Prepared, Result, significant_words};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAt {
    /// The one of this number, from 1.
    Number(u32),
    Character(usize),
}

/// A page with its text; places are counted in characters of the whole document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentPage {
    pub document: String,
    pub title: String,
    pub number: u32,
    pub pages: usize,
    pub start: usize,
    pub end: usize,
    pub text: String,
}

struct PageRange {
    number: u32,
    start: usize,
    end: usize,
}

impl Library {
    /// Returns a page of a document; `None` where its format has no pages.
    ///
    /// # Errors
    /// [`Error::Unknown`]; [`Error::Range`] for a place beyond its end, [`Error::Page`] for a page beyond its last.
    pub async fn page(&self, given: &str, at: PageAt) -> Result<Option<DocumentPage>> {
        let document = self.find(given).await?;
        let Some((last, pages)) = self.last_page(&document.id).await? else {
            return Ok(None);
        };
        let number = last.number;
        let end = last.end;
        let found = match (self.page_place(&document.id, at).await?, at) {
            // The end of the text belongs to its last page.
            (None, PageAt::Character(at)) if at == end => Some(last),
            (found, _) => found,
        };
        let Some(place) = found else {
            let length = usize::try_from(document.characters).unwrap_or(usize::MAX);
            return Err(match at {
                PageAt::Number(wanted) => Error::Page { number: wanted, last: number },
                PageAt::Character(at) => Error::Range { start: at, end: at, length },
            });
        };
        let start = place.start;
        let end = place.end;
        let text = self.text(Range { document: document.id.clone(), start, end }).await?;
        Ok(Some(DocumentPage {
            number: place.number,
            pages,
            start,
            end,
            text,
            document: document.id,
            title: document.title,
        }))
    }

    /// Returns for each quote the page with most words of a question, except stop words; `None` if no page has any.
    ///
    /// A piece may begin on the page before that of the words that it was found by.
    pub(crate) async fn pages_of_matches(
        &self,
        question: &str,
        quotes: &[(Range, &str)],
    ) -> Result<Vec<Option<u32>>> {
        if quotes.is_empty() {
            return Ok(Vec::new());
        }
        let database = self.database();
        let listed = database.dialect().pick(
            "(SELECT value ->> 'at' AS at, value ->> 'id' AS id, value ->> 'first' AS first, value ->> 'past' AS past
              FROM json_each($3)) w",
            "jsonb_to_recordset($3) AS w (at bigint, id text, first bigint, past bigint)",
        );
        let pages = "p.tenant = $1 AND p.owner = $2 AND p.id = w.id AND p.first < w.past AND p.past > w.first";
        let pages = database.dialect().look_up("document_page", "p", pages);
        let sql = format!(
            "SELECT p.number, p.first, p.past, w.at FROM {listed} {pages} ORDER BY p.number"
        );
        let wanted = quotes.iter().enumerate().map(|(at, (range, _))| {
            json!({ "at": at, "id": range.document, "first": range.start, "past": range.end })
        });
        let wanted: Vec<Json> = wanted.collect();
        let read = self.query(AssertSqlSafe(sql));
        let rows = database.fetch_all(&read.bind(json!(wanted))).await?;
        let mut pages: Vec<Vec<PageRange>> = quotes.iter().map(|_| Vec::new()).collect();
        for row in &rows {
            if let Some(pages) = pages.get_mut(count(row, 3)?) {
                pages.push(place(row)?);
            }
        }
        let words = significant_words(question);
        let found = quotes.iter().zip(pages).map(|((range, quote), pages)| {
            let on_page = |page: &PageRange| {
                let first = page.start.max(range.start) - range.start;
                let length = page.end.min(range.end) - range.start - first;
                let text: String = quote.chars().skip(first).take(length).collect();
                let page_words: BTreeSet<String> = split(&text).into_iter().collect();
                // A word itself says more than one that is like it.
                let worth = |word: &String| {
                    let is_related = || page_words.iter().any(|own| related(word, own));
                    if page_words.contains(word) { 2 } else { usize::from(is_related()) }
                };
                words.iter().map(worth).sum::<usize>()
            };
            let counted = pages.iter().map(|page| (on_page(page), page.number));
            // The first of equals.
            let best = counted.max_by_key(|(count, number)| (*count, std::cmp::Reverse(*number)));
            best.filter(|(count, _)| *count > 0).map(|(_, number)| number)
        });
        Ok(found.collect())
    }

    async fn last_page(&self, id: &str) -> Result<Option<(PageRange, usize)>> {
        let read = self.query(
            "SELECT number, first, past, count(*) OVER () FROM document_page
             WHERE tenant = $1 AND owner = $2 AND id = $3 ORDER BY number DESC LIMIT 1",
        );
        let read = read.bind(id);
        let row = self.database().fetch_optional(&read).await?;
        let last = |row: &Row| Ok((place(row)?, count(row, 3)?));
        row.as_ref().map(last).transpose()
    }

    async fn page_place(&self, id: &str, at: PageAt) -> Result<Option<PageRange>> {
        let (sql, at) = match at {
            PageAt::Number(number) => (
                "SELECT number, first, past FROM document_page
                 WHERE tenant = $1 AND owner = $2 AND id = $3 AND number = $4",
                i64::from(number),
            ),
            PageAt::Character(at) => (
                "SELECT number, first, past FROM document_page
                 WHERE tenant = $1 AND owner = $2 AND id = $3 AND past > $4 ORDER BY number LIMIT 1",
                i64::try_from(at).unwrap_or(i64::MAX),
            ),
        };
        let read = self.query(sql).bind(id).bind(at);
        self.database().fetch_optional(&read).await?.as_ref().map(place).transpose()
    }

    /// Stores the pages of a document, replacing those of its last version.
    pub(crate) async fn write_pages(
        &self,
        transaction: &mut Transaction<'_>,
        prepared: &Prepared,
    ) -> Result<()> {
        let delete =
            self.query("DELETE FROM document_page WHERE tenant = $1 AND owner = $2 AND id = $3");
        let delete = delete.bind(&prepared.id);
        transaction.execute(&delete).await?;
        let mut places = Places::new(&prepared.parsed.text);
        let pages = prepared.parsed.pages.iter().map(|page| {
            let first = places.character(page.start);
            let past = places.character(page.end);
            json!({ "number": page.number, "first": first, "past": past })
        });
        let pages: Vec<Json> = pages.collect();
        // Of two pages of one number, as another program may count them, the first one is meant.
        let sql = transaction.dialect().pick(
        "INSERT INTO document_page (tenant, owner, id, number, first, past)
         SELECT $1, $2, $3, value ->> 'number', value ->> 'first', value ->> 'past' FROM json_each($4) WHERE true
         ON CONFLICT DO NOTHING",
        "INSERT INTO document_page (tenant, owner, id, number, first, past)
         SELECT $1, $2, $3, number, first, past
         FROM jsonb_to_recordset($4) AS listed (number bigint, first bigint, past bigint)
         ON CONFLICT DO NOTHING",
    );
        let insert = self.query(AssertSqlSafe(sql));
        transaction.execute(&insert.bind(&prepared.id).bind(json!(pages))).await?;
        Ok(())
    }
}

fn place(row: &Row) -> Result<PageRange> {
    let number = u32::try_from(row.get::<i64>(0)?).unwrap_or(u32::MAX);
    Ok(PageRange { number, start: count(row, 1)?, end: count(row, 2)? })
}

fn count(row: &Row, column: usize) -> Result<usize> {
    Ok(usize::try_from(row.get::<i64>(column)?).unwrap_or(0))
}
