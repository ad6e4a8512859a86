//! Markdown: kept as it is, with the places of its headings and tables.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::encoding::Decoded;
use crate::{Error, Format, Limits, Parsed, Section, Table};

pub(crate) fn parse(decoded: Decoded, limits: &Limits) -> Result<Parsed, Error> {
    limits.check_text(decoded.text.len())?;
    let text = decoded.text;
    let (mut sections, tables) = structure(&text);
    crate::builder::close_sections(&mut sections, text.len());
    Ok(Parsed {
        format: Format::Markdown,
        title: front_matter(&text, "title").into_iter().next(),
        authors: crate::builder::author_names(
            ["author", "authors"].into_iter().flat_map(|key| front_matter(&text, key)),
        ),
        sections,
        tables,
        warnings: decoded.warnings,
        text,
        ..Parsed::default()
    })
}

/// Finds the headings (without ends) and tables of a Markdown text.
fn structure(text: &str) -> (Vec<Section>, Vec<Table>) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut sections = Vec::new();
    let mut tables: Vec<Table> = Vec::new();
    let mut heading: Option<(u8, usize, String)> = None;
    let mut header_end = 0;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                heading = Some((level as u8, range.start, String::new()));
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some((_, _, title)) = &mut heading {
                    title.push_str(&words);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some((_, _, title)) = &mut heading {
                    title.push(' ');
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some((level, start, title)) = heading.take() {
                    let title = crate::builder::one_line(&title);
                    sections.push(Section { level, title, start, end: 0 });
                }
            }
            Event::End(TagEnd::TableHead) => header_end = range.end,
            Event::End(TagEnd::Table) => {
                // The rule is on the line below the header.
                let rest = &text[header_end..range.end];
                let rule = rest.trim_start_matches('\n').split('\n').next().unwrap_or_default();
                let skipped = rest.len() - rest.trim_start_matches('\n').len();
                let end = text[..range.end].trim_end().len();
                let is_rule = rule.chars().all(|c| "|-: \t".contains(c));
                let header_end =
                    if is_rule { header_end + skipped + rule.len() } else { header_end };
                let header_end = text[..header_end.min(end)].trim_end().len();
                tables.push(Table { start: range.start, header_end, end });
            }
            _ => {}
        }
    }
    sections.sort_by_key(|section: &Section| section.start);
    tables.sort_by_key(|table| table.start);
    tables.dedup_by(|next, before| next.start < before.end);
    (sections, tables)
}

/// Returns the values of a key in the front matter (YAML between lines of `---`): one value, or those of a list.
fn front_matter(text: &str, key: &str) -> Vec<String> {
    let front = text.strip_prefix("---\n").and_then(|body| body.split_once("\n---"));
    let mut lines = front.map_or("", |(front, _)| front).lines();
    let Some(words) = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':')) else {
        return Vec::new();
    };
    let words = words.trim();
    let values: Vec<&str> = match words.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
        Some(list) => list.split(',').collect(),
        None if words.is_empty() => {
            lines.map_while(|line| line.trim_start().strip_prefix("- ")).collect()
        }
        None => vec![words],
    };
    let bare = |value: &str| value.trim().trim_matches(['"', '\'']).to_owned();
    values.into_iter().map(bare).filter(|value| !value.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_and_tables_are_found_at_their_positions() {
        let text = "---\ntitle: \"Rates\"\nauthor: Ann Archer; Ben Brook\n---\n# One\n\nWords.\n\n## *Two* and `three`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n```\n# not a heading\n```\n";
        let decoded = Decoded { text: text.into(), ..Decoded::default() };
        let parsed = parse(decoded, &Limits::default()).unwrap();
        assert_eq!(parsed.title.as_deref(), Some("Rates"));
        assert_eq!(parsed.authors, ["Ann Archer", "Ben Brook"]);
        for list in ["author: [Ann Archer, 'Ben Brook']", "authors:\n  - Ann Archer\n  - Ben Brook"]
        {
            let text = format!("---\n{list}\ndate: 2026\n---\nWords.\n");
            let listed = parse(Decoded { text, ..Decoded::default() }, &Limits::default()).unwrap();
            assert_eq!(listed.authors, ["Ann Archer", "Ben Brook"], "{list}");
        }
        let titles: Vec<&str> = parsed.sections.iter().map(|one| one.title.as_str()).collect();
        assert_eq!(titles, ["One", "Two and three"]);
        let table = &parsed.tables[0];
        assert_eq!(&text[table.start..table.header_end], "| a | b |\n|---|---|");
        assert_eq!(&text[table.header_end..table.end], "\n| 1 | 2 |\n| 3 | 4 |");
    }
}
