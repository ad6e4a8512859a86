//! Plain text: kept as it is; lines that are titles by convention open sections.

use crate::encoding::Decoded;
use crate::{Error, Format, Limits, Parsed, Section};

/// Longest line that may be a heading, in characters.
const LONGEST_HEADING: usize = 90;

pub(crate) fn parse(decoded: Decoded, limits: &Limits) -> Result<Parsed, Error> {
    limits.check_text(decoded.text.len())?;
    let text = decoded.text;
    let mut sections = headings(&text);
    crate::builder::close_sections(&mut sections, text.len());
    Ok(Parsed {
        format: Format::Text,
        sections,
        warnings: decoded.warnings,
        text,
        ..Parsed::default()
    })
}

/// Finds underlined, numbered and named headings (`Chapter 3`, `ARTICLE II`), each alone between blank lines.
fn headings(text: &str) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut start = 0;
    let mut was_blank = true;
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let words = line.trim();
        let next = lines.peek().map(|next| next.trim()).unwrap_or_default();
        let may_be = was_blank && !words.is_empty() && words.chars().count() <= LONGEST_HEADING;
        if let Some(level) = level(words, next).filter(|_| may_be) {
            sections.push(Section { level, title: words.to_owned(), start, end: 0 });
        }
        was_blank = words.is_empty();
        start += line.len();
    }
    sections
}

fn level(line: &str, next: &str) -> Option<u8> {
    let underlined = |with: char| next.len() >= 3 && next.chars().all(|c| c == with);
    if underlined('=') {
        return Some(1);
    }
    if underlined('-') {
        return Some(2);
    }
    if !next.is_empty() {
        return None;
    }
    let first = line.split_whitespace().next()?.trim_end_matches(['.', ':']);
    let named = ["CHAPTER", "BOOK", "PART", "ARTICLE", "SECTION", "AMENDMENT", "APPENDIX"];
    if let Some(place) = named.iter().position(|name| name.eq_ignore_ascii_case(first)) {
        let rest = line.split_whitespace().nth(1).unwrap_or_default();
        let counted =
            rest.chars().next().is_some_and(|c| c.is_ascii_digit() || "IVXLC".contains(c));
        return (counted || line == line.to_uppercase()).then_some(if place == 4 { 2 } else { 1 });
    }
    let numbered = first.chars().all(|c| c.is_ascii_digit() || c == '.')
        && line.split_whitespace().nth(1).is_some_and(|word| word.starts_with(char::is_uppercase))
        && !line.ends_with(['.', ';', ',']);
    if numbered {
        return u8::try_from(1 + first.matches('.').count()).ok().map(|level| level.min(6));
    }
    let letters = line.chars().filter(|c| c.is_alphabetic()).count();
    let shouted =
        letters >= 4 && !line.chars().any(char::is_lowercase) && line.chars().count() < 60;
    shouted.then_some(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conventional_titles_open_sections() {
        let text = "Title\n=====\n\nWords.\n\nARTICLE I\n\nAll powers.\n\nSection 1\n\nMore.\n\n2.1 Scope\n\nIt is\nplain text.\n";
        let decoded = Decoded { text: text.into(), ..Decoded::default() };
        let parsed = parse(decoded, &Limits::default()).unwrap();
        let titles: Vec<(&str, u8)> =
            parsed.sections.iter().map(|one| (one.title.as_str(), one.level)).collect();
        assert_eq!(titles, [("Title", 1), ("ARTICLE I", 1), ("Section 1", 2), ("2.1 Scope", 2)]);
        let at = text.find("All powers").unwrap();
        assert_eq!(parsed.section_path(at), ["ARTICLE I"]);
    }
}
