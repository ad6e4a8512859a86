//! What a parsed document is: its text, and where in it pages, sections and tables lie.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Format;

/// A document's canonical text (Markdown where the source has structure) and its offset table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parsed {
    pub format: Format,
    /// The document's own title: its properties' or its first heading.
    pub title: Option<String>,
    /// Names of the people who wrote it, as its properties say.
    #[serde(default)]
    pub authors: Vec<String>,
    pub text: String,
    /// In order, without gaps; empty where the format has no pages.
    pub pages: Vec<Page>,
    /// In order of their headings; sections nest.
    pub sections: Vec<Section>,
    /// In order, never overlapping.
    pub tables: Vec<Table>,
    /// What a reader should know about the parsing.
    pub warnings: Vec<Warning>,
}

/// A page (PDF), slide (PPTX, ODP) or sheet (XLSX, XLS, ODS).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// From 1, as a reader counts.
    pub number: u32,
    pub start: usize,
    pub end: usize,
}

/// A heading and what stands under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// 1 is the outermost.
    pub level: u8,
    pub title: String,
    /// Where the heading's line starts.
    pub start: usize,
    /// Where the next heading of the same or an outer level starts.
    pub end: usize,
}

/// A table in the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub start: usize,
    /// Where the header rows end, the rule below them included.
    pub header_end: usize,
    pub end: usize,
}

/// What a reader should know about how a text was got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Warning {
    /// These pages hold pictures and no text.
    #[error("pages with pictures and no text: {}", listed(.pages))]
    PagesWithoutText { pages: Vec<u32> },
    /// Right-to-left text was put into reading order by guesswork.
    #[error("right-to-left text whose order is doubtful, on pages: {}", listed(.pages))]
    DoubtfulOrder { pages: Vec<u32> },
    /// Right-to-left text on these pages is set in a font that calls some of its letters by others' names.
    #[error("right-to-left text whose letters are doubtful, on pages: {}", listed(.pages))]
    DoubtfulLetters { pages: Vec<u32> },
    /// Some letters on these pages are missing: their fonts do not say what they are.
    #[error("letters left out, which their fonts do not name, on pages: {}", listed(.pages))]
    LettersUnread { pages: Vec<u32> },
    /// These pages could not be read.
    #[error("pages that cannot be read: {}", listed(.pages))]
    PagesUnread { pages: Vec<u32> },
    /// The bytes named no encoding; this one was guessed.
    #[error("the encoding was guessed: {encoding}")]
    EncodingGuessed { encoding: String },
    /// Another parser read it, which may know of no pages.
    #[error("read by another program{}: {program}", if *paged { "" } else { ", without pages" })]
    OtherParser {
        program: String,
        #[serde(default)]
        paged: bool,
    },
    /// Records with more or fewer fields than the header.
    #[error("records with more or fewer fields than the header: {count}")]
    UnevenRecords { count: usize },
    /// Lines with a quotation mark that is never closed; each was read by itself.
    #[error("lines with a quotation mark that is never closed: {count}")]
    LoneQuotes { count: usize },
    /// Characters of the text were broken, and are replaced or left out.
    #[error("broken characters, replaced or left out: {count}")]
    DamagedText { count: usize },
    /// Cells of a sheet could not be read and are left out.
    #[error("cells left out of sheet {sheet} ({reason}): {count}")]
    CellsUnread { sheet: String, count: usize, reason: String },
    /// Formulas without a stored result, which stand there as formulas.
    #[error("formulas without a stored result, shown as formulas: {count}")]
    FormulasWithoutResults { count: usize },
    /// Parts of the file could not be read and are left out.
    #[error("damaged parts, left out: {}", .parts.join(", "))]
    PartsUnread { parts: Vec<String> },
    /// Files attached to a mail, which are not read.
    #[error("attachments, not read: {}", .names.join(", "))]
    AttachmentsUnread { names: Vec<String> },
}

fn listed(pages: &[u32]) -> String {
    pages.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

impl Parsed {
    /// Returns the number of the page on which `at` lies.
    pub fn page_at(&self, at: usize) -> Option<u32> {
        let index = self.pages.partition_point(|page| page.start <= at);
        self.pages.get(index.checked_sub(1)?).map(|page| page.number)
    }

    /// Returns the titles of the sections around `at`, outermost first.
    pub fn section_path(&self, at: usize) -> Vec<&str> {
        let context =
            self.sections.iter().filter(|section| (section.start..section.end).contains(&at));
        context.map(|section| section.title.as_str()).collect()
    }

    /// Returns the table in which `range` begins.
    pub fn table_at(&self, range: &Range<usize>) -> Option<&Table> {
        let index = self.tables.partition_point(|table| table.start <= range.start);
        self.tables.get(index.checked_sub(1)?).filter(|table| range.start < table.end)
    }

    pub(crate) fn first_heading(&self) -> Option<String> {
        let first = self.sections.iter().find(|section| !section.title.trim().is_empty())?;
        Some(first.title.clone())
    }
}
