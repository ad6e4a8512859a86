//! Divides a document for search: parents to be read, and in them children to be found.
//!
//! Enter at [`chunk`]. Invariants: chunks are ranges of the canonical text, in order and never overlapping; text that
//! helps to find one (title, sections, a long table's header) is in its context, outside of its range. A text that was
//! changed in one place keeps the chunks of all other places.

mod atoms;
mod pack;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::Parsed;
pub use pack::tokens;

/// Sizes of chunks, in tokens by estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Most of a parent, which a model reads; a table up to this size stays whole.
    pub parent_tokens: usize,
    /// Most of a child, which is searched.
    pub child_tokens: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { parent_tokens: 1024, child_tokens: 256 }
    }
}

/// A range of the text that a model reads around a hit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub start: usize,
    pub end: usize,
    pub page: Option<u32>,
    /// Titles of the sections around it, outermost first.
    pub section: Vec<String>,
}

/// A range of the text that is found by words and by meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    pub parent: usize,
    pub start: usize,
    pub end: usize,
    pub page: Option<u32>,
    pub section: Vec<String>,
    /// The text for searches in addition to the chunk: title, sections, a table's header.
    pub context: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunks {
    pub parents: Vec<Parent>,
    pub children: Vec<Child>,
}

impl Child {
    pub fn indexed(&self, text: &str) -> String {
        let own = text.get(self.start..self.end).unwrap_or_default();
        if self.context.is_empty() { own.to_owned() } else { format!("{}\n{own}", self.context) }
    }
}

/// Divides a document called `title`; `before` has the texts of the chunks of its last version, which stay if they
/// still match.
pub fn chunk(parsed: &Parsed, title: &str, options: Options, before: &HashSet<String>) -> Chunks {
    let atoms = atoms::atoms(parsed, options);
    let groups = pack::children(&parsed.text, &atoms, options, before);
    let mut children: Vec<Child> = Vec::with_capacity(groups.len());
    for group in groups {
        let (Some(first), Some(last)) = (atoms.get(group.start), atoms.get(group.end - 1)) else {
            continue;
        };
        // A heading is read with the text below it: the section is that of the first words.
        let says = atoms[group.clone()].iter().find(|atom| !atom.heading).unwrap_or(first);
        let section: Vec<String> =
            parsed.section_path(says.start).into_iter().map(str::to_owned).collect();
        let context = context(parsed, title, &section, first.start);
        children.push(Child {
            parent: 0,
            start: first.start,
            end: last.end,
            page: parsed.page_at(first.start),
            section,
            context,
        });
    }
    let parents = pack::parents(parsed, &mut children, options);
    Chunks { parents, children }
}

/// Longest context, in characters; a table's header may be long.
const LONGEST_CONTEXT: usize = 600;

fn context(parsed: &Parsed, title: &str, section: &[String], start: usize) -> String {
    let mut path: Vec<&str> = Vec::new();
    for part in [title].into_iter().chain(section.iter().map(String::as_str)) {
        if !part.is_empty() && path.last() != Some(&part) {
            path.push(part);
        }
    }
    let mut context = path.join(" › ");
    if let Some(table) = parsed.table_at(&(start..start)).filter(|table| table.start < start) {
        context.push('\n');
        context.push_str(&parsed.text[table.start..table.header_end]);
    }
    match context.char_indices().nth(LONGEST_CONTEXT) {
        Some((end, _)) => context[..end].to_owned(),
        None => context,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    fn parsed(text: &str) -> Parsed {
        crate::parse(text.as_bytes(), "x.md", &Limits::default()).unwrap()
    }

    fn long(paragraphs: usize) -> String {
        let paragraph = |n: usize| {
            format!(
                "Paragraph {n} says something of its own. {}\n\n",
                "More words follow here. ".repeat(12)
            )
        };
        let sections = (0..paragraphs).map(|n| match n % 7 {
            0 => format!("## Section {}\n\n{}", n / 7, paragraph(n)),
            _ => paragraph(n),
        });
        format!("# Book\n\n{}", sections.collect::<String>())
    }

    fn texts(parsed: &Parsed, chunks: &Chunks) -> HashSet<String> {
        chunks.children.iter().map(|one| parsed.text[one.start..one.end].to_owned()).collect()
    }

    #[test]
    fn chunks_are_ordered_ranges_that_hold_every_word_once() {
        let parsed = parsed(&long(60));
        let chunks = chunk(&parsed, "Book", Options::default(), &HashSet::new());
        let mut end = 0;
        for child in &chunks.children {
            assert!(child.start >= end && parsed.text[end..child.start].trim().is_empty());
            assert!(tokens(&parsed.text[child.start..child.end]) <= 256);
            let parent = &chunks.parents[child.parent];
            assert!(parent.start <= child.start && child.end <= parent.end);
            assert!(tokens(&parsed.text[parent.start..parent.end]) <= 1024);
            end = child.end;
        }
        assert!(parsed.text[end..].trim().is_empty());
        assert!(chunks.children.iter().any(|one| one.context == "Book › Section 3"));
    }

    #[test]
    fn a_changed_paragraph_changes_at_most_three_chunks() {
        let text = long(200);
        let first = parsed(&text);
        let before = texts(&first, &chunk(&first, "Book", Options::default(), &HashSet::new()));
        let edits = [
            text.replacen("Paragraph 77 says", "Paragraph 77, as was found out later, says", 1),
            text.replacen("Paragraph 100 says", "A new paragraph.\n\nParagraph 100 says", 1),
            text.replacen("Paragraph 31 says something of its own.", "", 1),
        ];
        for edited in edits {
            assert_ne!(edited, text);
            let second = parsed(&edited);
            let after = texts(&second, &chunk(&second, "Book", Options::default(), &before));
            let changed = after.difference(&before).count();
            assert!((1..=3).contains(&changed), "{changed}");
        }
    }

    /// S3.05
    #[test]
    fn a_table_stays_whole_and_a_long_one_repeats_its_header_with_its_rows() {
        let rows = |count: usize| -> String {
            (0..count).map(|n| format!("| item {n} | {} |\n", n * 7)).collect()
        };
        let table = |count| format!("# Prices\n\n| name | price |\n| - | - |\n{}", rows(count));
        let small = parsed(&table(60));
        let chunks = chunk(&small, "", Options::default(), &HashSet::new());
        assert_eq!(chunks.children.len(), 1);

        let large = parsed(&table(2000));
        let chunks = chunk(&large, "", Options::default(), &HashSet::new());
        assert!(chunks.children.len() > 10);
        for child in &chunks.children[1..] {
            assert!(child.context.contains("| name | price |"), "{}", child.context);
            assert!(large.text[child.start..child.end].starts_with("| item "));
        }
    }

    #[test]
    fn a_text_without_breaks_is_divided_between_sentences_words_and_at_last_letters() {
        for text in ["Words and words. ".repeat(3000), "x".repeat(60_000), "文".repeat(30_000)] {
            let parsed = crate::parse(text.as_bytes(), "x.txt", &Limits::default()).unwrap();
            let chunks = chunk(&parsed, "", Options::default(), &HashSet::new());
            assert!(chunks.children.len() > 20, "{}", chunks.children.len());
            let all: usize = chunks
                .children
                .iter()
                .map(|one| parsed.text[one.start..one.end].trim().len())
                .sum();
            assert!(all + chunks.children.len() >= parsed.text.trim().len());
        }
    }
}
