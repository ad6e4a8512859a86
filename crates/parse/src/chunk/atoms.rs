//! The smallest pieces of chunks: paragraphs, items, rows; sentences if a paragraph is too long.

use super::{Options, tokens};
use crate::{Parsed, Table};

#[derive(Clone, Debug)]
pub(super) struct Atom {
    pub start: usize,
    pub end: usize,
    pub tokens: usize,
    pub heading: bool,
    /// A chunk never contains both this and the text before it.
    pub opens: bool,
}

pub(super) fn atoms(parsed: &Parsed, options: Options) -> Vec<Atom> {
    let mut writer = Writer { parsed, options, atoms: Vec::new(), opens: false };
    let mut at = 0;
    for table in &parsed.tables {
        writer.prose(at, table.start);
        writer.table(table);
        at = table.end;
    }
    writer.prose(at, parsed.text.len());
    writer.atoms
}

struct Writer<'a> {
    parsed: &'a Parsed,
    options: Options,
    atoms: Vec<Atom>,
    opens: bool,
}

impl Writer<'_> {
    fn push(&mut self, start: usize, end: usize, heading: bool) {
        let text = &self.parsed.text[start..end];
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return;
        }
        let start = start + (text.len() - text.trim_start().len());
        let opens = std::mem::take(&mut self.opens);
        let tokens = tokens(trimmed);
        self.atoms.push(Atom { start, end: start + trimmed.len(), tokens, heading, opens });
    }

    fn prose(&mut self, from: usize, to: usize) {
        let mut at = from;
        let headings = self.parsed.sections.iter().map(|section| section.start);
        for heading in headings.filter(|start| (from..to).contains(start)) {
            self.paragraphs(at, heading);
            // A heading directly below another one stays with it.
            self.opens = self.atoms.last().is_none_or(|last| !last.heading);
            let line = self.parsed.text[heading..to].find('\n').map_or(to, |end| heading + end);
            self.push(heading, line, true);
            at = line;
        }
        self.paragraphs(at, to);
    }

    fn paragraphs(&mut self, from: usize, to: usize) {
        let mut start = from;
        let mut at = from;
        for line in self.parsed.text[from..to].split_inclusive('\n') {
            if line.trim().is_empty() {
                self.paragraph(start, at);
                start = at + line.len();
            }
            at += line.len();
        }
        self.paragraph(start, to);
    }

    fn paragraph(&mut self, start: usize, end: usize) {
        if start >= end {
            return;
        }
        let text = &self.parsed.text[start..end];
        if tokens(text) <= self.options.child_tokens {
            self.push(start, end, false);
            return;
        }
        let mut from = start;
        for cut in cuts(text).into_iter().map(|cut| start + cut).chain([end]) {
            self.hard(from, cut);
            from = cut;
        }
    }

    /// Divides a text without natural breaks that is still too long.
    fn hard(&mut self, start: usize, end: usize) {
        let most = self.options.child_tokens.max(1);
        if start >= end {
            return;
        }
        if tokens(&self.parsed.text[start..end]) <= most {
            self.push(start, end, false);
            return;
        }
        let mut from = start;
        let mut space = None;
        for (place, c) in self.parsed.text[start..end].char_indices() {
            let at = start + place;
            // Each character is at most one token.
            if at > from && self.parsed.text[from..at].chars().count() >= most {
                let cut = space.filter(|space| *space > from).unwrap_or(at);
                self.push(from, cut, false);
                from = cut;
                space = None;
            }
            if c.is_whitespace() {
                space = Some(at);
            }
        }
        self.push(from, end, false);
    }

    fn table(&mut self, table: &Table) {
        if tokens(&self.parsed.text[table.start..table.end]) <= self.options.parent_tokens / 2 {
            self.push(table.start, table.end, false);
            return;
        }
        // The header goes with the first rows; the others carry it in their context.
        let mut start = table.start;
        let mut at = table.header_end;
        for (index, row) in
            self.parsed.text[table.header_end..table.end].split_inclusive('\n').enumerate()
        {
            at += row.len();
            if index > 0 || !row.trim().is_empty() {
                self.hard(start, at);
                start = at;
            }
        }
        self.hard(start, table.end);
    }
}

fn cuts(text: &str) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let ends = match c {
            '。' | '！' | '？' | '\n' => true,
            '.' | '!' | '?' | ';' => next.is_some_and(char::is_whitespace),
            _ => false,
        };
        if ends {
            cuts.push(at + c.len_utf8());
        }
    }
    cuts
}
