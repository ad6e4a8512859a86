//! Answers for people at a terminal: Markdown (CommonMark with tables) with the weights and colours of a terminal.

use std::io::IsTerminal as _;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::{Result, output};

const BOLD: &str = "\u{1b}[1m";
const ITALIC: &str = "\u{1b}[3m";
const CODE: &str = "\u{1b}[36m";
const FAINT: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// Writes an answer to standard output: formatted for a terminal with colors, otherwise unchanged.
pub(super) fn answer(text: &str) -> Result<()> {
    if std::io::stdout().is_terminal() && !output::is_colour_refused() {
        // What could steer the terminal goes before the terminal's own codes come.
        output::bytes(format!("{}\n", rendered(&output::plain(text))).as_bytes())
    } else {
        output::text(text)
    }
}

/// Renders Markdown for a terminal, unless colours are refused.
pub(super) fn shown(markdown: &str) -> String {
    if output::is_colour_refused() { markdown.to_owned() } else { rendered(markdown) }
}

fn rendered(markdown: &str) -> String {
    let mut page = Page::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        page.take(event);
    }
    page.text.trim_end().to_owned()
}

#[derive(Default)]
struct Page {
    text: String,
    /// The codes in force, innermost last.
    codes: Vec<&'static str>,
    /// The surrounding lists: the next number, or `None` for unnumbered ones.
    lists: Vec<Option<u64>>,
    link: Option<String>,
    rows: Vec<Vec<String>>,
    is_in_cell: bool,
    quotes: usize,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.say(&text),
            Event::Code(code) => {
                self.on(CODE);
                self.say(&code);
                self.off();
            }
            Event::SoftBreak | Event::HardBreak => self.say("\n"),
            Event::Rule => self.block(&format!("{FAINT}{}{PLAIN}\n", "─".repeat(40))),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level: HeadingLevel::H1 | HeadingLevel::H2, .. } => {
                self.gap();
                self.on(BOLD);
            }
            Tag::Heading { .. } => {
                self.gap();
                self.on(ITALIC);
            }
            Tag::Paragraph if self.lists.is_empty() => self.gap(),
            Tag::BlockQuote(_) => {
                self.gap();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.gap();
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    let language = output::one_line(&language);
                    self.text.push_str(&format!("{FAINT}{language}{PLAIN}\n"));
                }
                self.on(CODE);
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.gap();
                } else {
                    self.fresh_line();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.fresh_line();
                let depth = self.lists.len().saturating_sub(1);
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                self.text.push_str(&format!("{}{mark}", "  ".repeat(depth)));
            }
            Tag::Emphasis => self.on(ITALIC),
            Tag::Strong => self.on(BOLD),
            Tag::Strikethrough => self.on(FAINT),
            Tag::Link { dest_url, .. } => self.link = Some(dest_url.into_string()),
            Tag::Table(_) => {
                self.gap();
                self.rows.clear();
            }
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            Tag::TableCell => {
                self.is_in_cell = true;
                if let Some(row) = self.rows.last_mut() {
                    row.push(String::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) | TagEnd::CodeBlock => {
                self.text.truncate(self.text.trim_end_matches('\n').len());
                self.off();
                self.fresh_line();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.off(),
            TagEnd::BlockQuote(_) => {
                self.quotes = self.quotes.saturating_sub(1);
                self.fresh_line();
            }
            TagEnd::Paragraph | TagEnd::Item => self.fresh_line(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Link => {
                // The text of a link may be its address.
                if let Some(address) =
                    self.link.take().filter(|to| !self.text.ends_with(to.as_str()))
                {
                    self.say(&format!(" ({address})"));
                }
            }
            TagEnd::TableCell => self.is_in_cell = false,
            TagEnd::Table => {
                let mut rows = std::mem::take(&mut self.rows).into_iter();
                let head = rows.next().unwrap_or_default();
                self.block(&format!("{}\n", output::rows(&head, rows.collect())));
            }
            _ => {}
        }
    }

    /// Adds words at their place, without control sequences: Markdown can write any letter by its number.
    fn say(&mut self, words: &str) {
        let words = output::plain(words);
        if self.is_in_cell {
            if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
                cell.push_str(&words);
            }
            return;
        }
        let margin = match (self.quotes, self.lists.len()) {
            (0, 0) => String::new(),
            (quotes, depth) => "│ ".repeat(quotes) + &"  ".repeat(depth),
        };
        if self.quotes > 0 && self.text.ends_with('\n') {
            self.text.push_str(&margin);
        }
        self.text.push_str(&words.replace('\n', &format!("\n{margin}")));
    }

    fn on(&mut self, code: &'static str) {
        self.codes.push(code);
        if !self.is_in_cell {
            self.text.push_str(code);
        }
    }

    fn off(&mut self) {
        self.codes.pop();
        if !self.is_in_cell {
            self.text.push_str(PLAIN);
            self.text.push_str(&self.codes.concat());
        }
    }

    fn block(&mut self, text: &str) {
        self.fresh_line();
        self.text.push_str(text);
    }

    /// Begins a line, if one is under way.
    fn fresh_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Leaves a line free before a block.
    fn gap(&mut self) {
        self.fresh_line();
        let is_within = !self.lists.is_empty() || self.quotes > 0;
        if !self.text.is_empty() && !is_within && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1.13
    #[test]
    fn no_letter_written_by_its_number_steers_the_terminal() {
        let text = "&#27;[2J a &#x202e;b **&#27;]52;c;eA==&#7;** [to](https://example.org/&#27;[3J) `&#27;`\n\n\
                    ```&#27;[4J\n&#27;[5J\n```\n\n| &#27;[6J |\n|---|\n| &#27;[7J |\n";
        let shown = rendered(text);
        for (at, _) in shown.match_indices('\u{1b}') {
            let own = [BOLD, ITALIC, CODE, FAINT, PLAIN];
            assert!(own.iter().any(|code| shown[at..].starts_with(code)), "{shown:?}");
        }
        assert!(!shown.contains(['\u{7}', '\u{202e}']), "{shown:?}");
    }

    /// S1.13
    #[test]
    fn an_answer_is_shown_with_the_weights_of_a_terminal() {
        let text = "# Clocks\n\nMorocco **never** uses `DST`, see [the news](https://example.org/n) [1].\n\n\
                    1. first\n2. second\n   - inner\n\n> quoted\n> twice\n\n```sql\nSELECT 1;\n```\n\nEnd.";
        insta::assert_snapshot!(rendered(text).replace('\u{1b}', "␛"));
    }

    #[test]
    fn a_table_is_drawn() {
        let shown =
            rendered("| zone | changes |\n|---|---|\n| Casablanca | **46** |\n| Hebron | 34 |");
        assert!(shown.contains("Casablanca") && shown.contains("46"), "{shown}");
        assert!(!shown.contains("|---"), "{shown}");
        assert_eq!(shown.lines().filter(|line| line.contains("Hebron")).count(), 1, "{shown}");
    }

    #[test]
    fn plain_words_stay_as_they_are() {
        assert_eq!(
            rendered("It is 42 [1].\nSee a_b_c and 2 * 3 * 4."),
            "It is 42 [1].\nSee a_b_c and 2 * 3 * 4."
        );
    }
}
