//! The result of parsing: a text, and the positions of pages, sections and tables in it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Format;

/// A document's canonical text (Markdown if the source has structure) and its offset table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parsed {
    pub format: Format,
    /// The document's own title: its properties' or its first heading.
    pub title: Option<String>,
    /// Names of the people who wrote it, as its properties say.
    #[serde(default)]
    pub authors: Vec<String>,
    pub text: String,
    /// In order, without gaps; empty if the format has no pages.
    pub pages: Vec<Page>,
    /// In order of their headings; sections nest.
    pub sections: Vec<Section>,
    /// In order, never overlapping.
    pub tables: Vec<Table>,
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// 1 is the outermost.
    pub level: u8,
    pub title: String,
    pub start: usize,
    /// The start of the next heading of the same or an outer level.
    pub end: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub start: usize,
    /// The end of the header rows, including the rule below them.
    pub header_end: usize,
    pub end: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Warning {
    /// These pages consist of pictures; at most a stamp or a footer on them is text.
    #[error("pages with pictures and little or no text{}: {}", reason(.why), listed(.pages))]
    PagesWithoutText {
        pages: Vec<u32>,
        #[serde(default)]
        why: String,
    },
    /// The text of these pages was recognized in their pictures.
    #[error("text recognized in pictures, with its confidence, on pages: {}", shares(.pages))]
    Recognized {
        /// Their numbers, and the mean confidence in percent.
        pages: Vec<(u32, u8)>,
    },
    /// The reading order of right-to-left text is a guess.
    #[error("right-to-left text whose order is doubtful, on pages: {}", listed(.pages))]
    DoubtfulOrder { pages: Vec<u32> },
    /// Right-to-left text on these pages has a font that gives some of its letters wrong names.
    #[error("right-to-left text whose letters are doubtful, on pages: {}", listed(.pages))]
    DoubtfulLetters { pages: Vec<u32> },
    /// Some letters on these pages are missing, because their fonts do not name them.
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
    /// Lines with a quotation mark that is never closed; each was read separately.
    #[error("lines with a quotation mark that is never closed: {count}")]
    LoneQuotes { count: usize },
    /// Characters of the text were broken, and are replaced or left out.
    #[error("broken characters, replaced or left out: {count}")]
    DamagedText { count: usize },
    /// Cells of a sheet could not be read and are left out.
    #[error("cells left out of sheet {sheet} ({reason}): {count}")]
    CellsUnread { sheet: String, count: usize, reason: String },
    /// Formulas without a stored result, which appear as formulas.
    #[error("formulas without a stored result, shown as formulas: {count}")]
    FormulasWithoutResults { count: usize },
    /// Parts of the file could not be read and are left out.
    #[error("damaged parts, left out: {}", .parts.join(", "))]
    PartsUnread { parts: Vec<String> },
    /// Parts of the file are longer than what is read of them.
    #[error("cut because they are too long: {}", .parts.join(", "))]
    PartsCut { parts: Vec<String> },
    /// Files attached to a mail, which are not read.
    #[error("attachments, not read: {}", .names.join(", "))]
    AttachmentsUnread { names: Vec<String> },
}

fn listed(pages: &[u32]) -> String {
    pages.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn shares(pages: &[(u32, u8)]) -> String {
    let page = |(number, percent): &(u32, u8)| format!("{number} ({percent} %)");
    pages.iter().map(page).collect::<Vec<_>>().join(", ")
}

fn reason(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(" ({why})") }
}

impl Parsed {
    pub fn page_at(&self, at: usize) -> Option<u32> {
        let index = self.pages.partition_point(|page| page.start <= at);
        self.pages.get(index.checked_sub(1)?).map(|page| page.number)
    }

    /// Returns the least confidence, in percent, with which text of a range was recognized in a picture.
    pub fn recognized(&self, range: &Range<usize>) -> Option<u8> {
        let pages = self.warnings.iter().find_map(|warning| match warning {
            Warning::Recognized { pages } => Some(pages),
            _ => None,
        })?;
        let is_touched = |page: &&Page| page.start < range.end && range.start < page.end;
        let touched = self.pages.iter().filter(is_touched);
        // In the order of their numbers.
        let place = |page: &Page| pages.binary_search_by_key(&page.number, |(number, _)| *number);
        let listed = touched.filter_map(|page| pages.get(place(page).ok()?));
        listed.map(|(_, percent)| *percent).min()
    }

    /// Returns the titles of the sections around `at`, outermost first.
    pub fn section_path(&self, at: usize) -> Vec<&str> {
        let context =
            self.sections.iter().filter(|section| (section.start..section.end).contains(&at));
        context.map(|section| section.title.as_str()).collect()
    }

    pub fn table_at(&self, range: &Range<usize>) -> Option<&Table> {
        let index = self.tables.partition_point(|table| table.start <= range.start);
        self.tables.get(index.checked_sub(1)?).filter(|table| range.start < table.end)
    }
}
