//! The pages of a document, for those who check what was cited.

use perihelion_database::query;
use perihelion_parse::Page;
use serde::Serialize;

use crate::text::Places;
use crate::{Error, Library, Scope};

/// Which page is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAt {
    /// The one of this number, from 1.
    Number(u32),
    /// The one that holds the character at this place.
    Character(usize),
}

/// A page with its text; places are counted in characters of the whole document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentPage {
    pub document: String,
    pub title: String,
    pub number: u32,
    /// Pages of the document.
    pub pages: usize,
    pub start: usize,
    pub end: usize,
    pub text: String,
}

impl Library {
    /// Returns a page of a document; `None` where its format has no pages.
    ///
    /// # Errors
    /// [`Error::Unknown`]; [`Error::Range`] for a place beyond its end, [`Error::Page`] for a page beyond its last.
    pub async fn page(
        &self,
        scope: &Scope,
        given: &str,
        at: PageAt,
    ) -> Result<Option<DocumentPage>, Error> {
        let document = self.find(scope, given).await?;
        let read = query(
            "SELECT body, outline FROM document_text WHERE tenant = $1 AND owner = $2 AND id = $3",
        );
        let read = read.bind(scope.tenant()).bind(scope.owner()).bind(&document.id);
        let row = self.database_of(scope).fetch_optional(&read).await?;
        let row = row.ok_or_else(|| Error::Unknown(given.to_owned()))?;
        let (body, mut outline): (String, serde_json::Value) = (row.get(0)?, row.get(1)?);
        let pages: Vec<Page> = serde_json::from_value(outline["pages"].take())
            .map_err(|error| Error::Damaged { id: document.id.clone(), what: error.to_string() })?;
        let Some(last) = pages.last() else { return Ok(None) };
        let mut places = Places::new(&body);
        let mut found = None;
        for page in &pages {
            let (start, end) = (places.character(page.start), places.character(page.end));
            let is_meant = match at {
                PageAt::Number(number) => page.number == number,
                PageAt::Character(at) => at < end || (page == last && at == end),
            };
            if is_meant {
                found = Some((page, start, end));
                break;
            }
        }
        let Some((page, start, end)) = found else {
            let length = body.chars().count();
            return Err(match at {
                PageAt::Number(number) => Error::Page { number, last: last.number },
                PageAt::Character(at) => Error::Range { start: at, end: at, length },
            });
        };
        Ok(Some(DocumentPage {
            number: page.number,
            pages: pages.len(),
            start,
            end,
            text: body.get(page.start..page.end).unwrap_or_default().to_owned(),
            document: document.id,
            title: document.title,
        }))
    }
}
