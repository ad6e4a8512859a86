//! Writes a canonical text block by block and notes where pages, sections and tables lie.

use crate::encoding::UNSEEN;
use crate::{Format, Page, Parsed, Section, Table, Warning};

/// A table before it is written: the texts of its rows.
pub(crate) type Grid = Vec<Vec<String>>;

/// The previous block, which decides the separator before the next one.
#[derive(Clone, Copy, Default, PartialEq)]
enum Last {
    #[default]
    Nothing,
    Item,
    Block,
}

#[derive(Default)]
pub(crate) struct Builder {
    format: Format,
    text: String,
    pages: Vec<(u32, usize)>,
    sections: Vec<Section>,
    tables: Vec<Table>,
    last: Last,
    pub warnings: Vec<Warning>,
    pub title: Option<String>,
    pub authors: Vec<String>,
}

impl Builder {
    pub fn new(format: Format) -> Self {
        Self { format, ..Self::default() }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn page(&mut self, number: u32) {
        self.separate(Last::Block);
        self.pages.push((number, self.text.len()));
    }

    pub fn heading(&mut self, level: u8, title: &str) {
        let title = one_line(title);
        if title.is_empty() {
            return;
        }
        self.separate(Last::Block);
        let start = self.text.len();
        let level = level.clamp(1, 6);
        self.text.push_str(&"#".repeat(level.into()));
        self.text.push(' ');
        self.text.push_str(&title);
        self.sections.push(Section { level, title, start, end: 0 });
    }

    pub fn paragraph(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.separate(Last::Block);
        self.text.push_str(text);
    }

    /// Writes a list's item; `depth` counts from 0.
    pub fn item(&mut self, depth: usize, marker: &str, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.separate(Last::Item);
        self.text.push_str(&"    ".repeat(depth.min(8)));
        self.text.push_str(marker);
        self.text.push(' ');
        self.text.push_str(&text.replace('\n', &format!("\n{}", " ".repeat(depth.min(8) * 4 + 2))));
    }

    pub fn code(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.separate(Last::Block);
        let fence = if text.contains("```") { "~~~~" } else { "```" };
        self.text.push_str(&format!("{fence}\n{}\n{fence}", text.trim_matches('\n')));
    }

    /// Writes a table whose first row is its header.
    pub fn table(&mut self, grid: &[Vec<String>]) {
        let width = grid.iter().map(Vec::len).max().unwrap_or(0);
        let filled = |row: &Vec<String>| row.iter().any(|cell| !cell.trim().is_empty());
        if width == 0 || !grid.iter().any(filled) {
            return;
        }
        self.separate(Last::Block);
        let start = self.text.len();
        let mut header_end = start;
        for (index, row) in grid.iter().enumerate() {
            if index > 0 {
                self.text.push('\n');
            }
            self.text.push('|');
            for column in 0..width {
                let cell = one_line(row.get(column).map_or("", String::as_str)).replace('|', "\\|");
                self.text.push_str(&format!(" {cell} |"));
            }
            if index == 0 {
                self.text.push_str("\n|");
                self.text.push_str(&" - |".repeat(width));
                header_end = self.text.len();
            }
        }
        self.tables.push(Table { start, header_end, end: self.text.len() });
    }

    pub fn include(&mut self, inner: Parsed) {
        self.separate(Last::Block);
        let at = self.text.len();
        self.text.push_str(inner.text.trim_end());
        let sections = inner.sections.into_iter();
        self.sections
            .extend(sections.map(|section| Section { start: at + section.start, ..section }));
        self.tables.extend(inner.tables.into_iter().map(|Table { start, header_end, end }| {
            Table { start: at + start, header_end: at + header_end, end: at + end }
        }));
        self.warnings.extend(inner.warnings);
    }

    pub fn finish(mut self) -> Parsed {
        let end = self.text.trim_end().len();
        self.text.truncate(end);
        self.text.push('\n');
        close_sections(&mut self.sections, self.text.len());
        let ends = self.pages.iter().skip(1).map(|page| page.1).chain([self.text.len()]);
        let pages = self.pages.iter().zip(ends).map(|(&(number, start), end)| Page {
            number,
            start: start.min(self.text.len()),
            end: end.min(self.text.len()),
        });
        Parsed {
            format: self.format,
            title: self.title.filter(|title| !title.trim().is_empty()),
            authors: self.authors,
            pages: pages.collect(),
            text: self.text,
            sections: self.sections,
            tables: self.tables,
            warnings: self.warnings,
        }
    }

    fn separate(&mut self, next: Last) {
        match (self.last, next) {
            (Last::Nothing, _) => {}
            (Last::Item, Last::Item) => self.text.push('\n'),
            _ => {
                if !self.text.is_empty() && !self.text.ends_with("\n\n") {
                    self.text.push_str("\n\n");
                }
            }
        }
        self.last = next;
    }
}

/// Sets the ends of sections that are in order of their starts.
pub(crate) fn close_sections(sections: &mut [Section], end: usize) {
    for index in 0..sections.len() {
        let level = sections[index].level;
        let next = sections[index + 1..].iter().find(|next| next.level <= level);
        sections[index].end = next.map_or(end, |next| next.start);
    }
}

pub(crate) fn one_line(text: &str) -> String {
    text.replace(UNSEEN, "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Appends a line; a word divided at its end is made whole.
pub(crate) fn join(text: &mut String, next: &str) {
    let divided = text.ends_with(['-', '\u{2010}'])
        && text.chars().rev().nth(1).is_some_and(char::is_alphabetic)
        && next.starts_with(char::is_lowercase);
    if divided {
        text.pop();
    } else {
        text.push(' ')
    }
    text.push_str(next);
}

/// Maximum number of authors; a longer list is a list of something else.
const MOST: usize = 32;

/// Characters of a name at most.
const LONGEST: usize = 120;

/// Splits names: at semicolons, and at commas and `and` if the parts between have two words, as names do.
pub(crate) fn author_names(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let parts = words.into_iter().flat_map(|line| {
        line.split(';').flat_map(|part| divided(part, ",")).collect::<Vec<String>>()
    });
    for name in parts.flat_map(|part| divided(&part, " and ")) {
        let name = one_line(&name);
        // A list ends with `, and`.
        let name = name.strip_prefix("and ").unwrap_or(&name).to_owned();
        let is_name = name.chars().any(char::is_alphabetic) && name.chars().count() <= LONGEST;
        if is_name && !found.contains(&name) && found.len() < MOST {
            found.push(name);
        }
    }
    found
}

fn divided(text: &str, by: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split(by).map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.iter().all(|part| part.contains(char::is_whitespace)) {
        parts.into_iter().map(str::to_owned).collect()
    } else {
        vec![text.trim().to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::author_names;

    #[test]
    fn adjacent_names_are_separated_and_no_name_is_split() {
        let of = |line: &str| author_names([line.to_owned()]);
        assert_eq!(of("Ann Archer; Ben Brook;"), ["Ann Archer", "Ben Brook"]);
        assert_eq!(of("Ann Archer, Ben Brook and Cy Cole"), ["Ann Archer", "Ben Brook", "Cy Cole"]);
        assert_eq!(
            of("Ann Archer, Ben Brook, and Cy Cole"),
            ["Ann Archer", "Ben Brook", "Cy Cole"]
        );
        assert_eq!(of("Archer, Ann"), ["Archer, Ann"]);
        assert_eq!(of("Brook and Sons"), ["Brook and Sons"]);
        assert!(of(" ; 12 ").is_empty());
        assert_eq!(author_names(["A B".to_owned(), "A B".to_owned()]), ["A B"]);
    }
}
