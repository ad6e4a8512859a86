//! The positions of pages in a text that was read page by page.

use perihelion_parse::{Page, Parsed, Warning, canonical};

const BETWEEN: &str = "\n\n";

/// A text, and the positions of its pages; `None` if they are unknown.
#[derive(Debug, PartialEq)]
pub(crate) struct Paged {
    pub text: Vec<u8>,
    pages: Vec<Page>,
    /// The parser's errors about parts that it did not read.
    pub unread: Vec<String>,
}

impl Paged {
    pub(super) fn without_pages(text: impl Into<Vec<u8>>) -> Self {
        Self { text: text.into(), pages: Vec::new(), unread: Vec::new() }
    }

    pub(super) fn new<'t>(texts: impl IntoIterator<Item = (u32, &'t str)>) -> Self {
        let mut whole = String::new();
        let mut starts = Vec::new();
        for (number, text) in texts {
            if !starts.is_empty() {
                whole.push_str(BETWEEN);
            }
            starts.push((number, whole.len()));
            // As it will be stored, because other signs would shift the following text.
            whole.push_str(&canonical(text.trim_matches(['\r', '\n'])));
        }
        let ends = starts.iter().skip(1).map(|&(_, start)| start).chain([whole.len()]);
        let page = |(&(number, start), end)| Page { number, start, end };
        let pages = starts.iter().zip(ends).map(page).collect();
        Self { pages, ..Self::without_pages(whole) }
    }

    pub(crate) fn place(self, parsed: &mut Parsed) {
        // Only where they were found in the very text that is kept.
        if parsed.text.as_bytes() == self.text {
            parsed.pages = self.pages;
        }
        if !self.unread.is_empty() {
            parsed.warnings.push(Warning::PartsUnread { parts: self.unread });
        }
    }
}

/// Takes each form feed for the end of a page, numbered from 1, as `pdftotext` writes them.
pub(super) fn at_form_feeds(text: Vec<u8>) -> Paged {
    match std::str::from_utf8(&text) {
        Ok(whole) if whole.contains('\u{c}') => {
            let whole = whole.trim_end();
            let whole = whole.strip_prefix('\u{feff}').unwrap_or(whole);
            Paged::new((1..).zip(whole.split('\u{c}')))
        }
        _ => Paged::without_pages(text),
    }
}

#[cfg(test)]
mod tests {
    use perihelion_parse::{Limits, parse};

    use super::*;

    fn pages(text: &str) -> (String, Vec<(u32, String)>) {
        let paged = at_form_feeds(text.into());
        let mut parsed = parse(&paged.text, "text.md", &Limits::default()).unwrap();
        paged.place(&mut parsed);
        let of = |page: &Page| (page.number, parsed.text[page.start..page.end].to_owned());
        (parsed.text.clone(), parsed.pages.iter().map(of).collect())
    }

    #[test]
    fn a_form_feed_ends_a_page() {
        let (text, found) = pages("# Öne\r\nfi\u{ad}rst\u{7}\n\u{c}\u{c}third\n\u{c}");
        assert_eq!(text, "# Öne\nfirst\n\n\n\nthird");
        let expected = [(1, "# Öne\nfirst\n\n"), (2, "\n\n"), (3, "third")];
        assert_eq!(found, expected.map(|(number, text)| (number, text.to_owned())));
        assert_eq!(pages("no pages\n").1, []);
    }
}
