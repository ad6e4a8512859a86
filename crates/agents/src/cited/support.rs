//! The part of a passage on which statements rest: the hit of the search, or other paragraphs that were read around it.

use std::cmp::Reverse;
use std::ops::Range;

use perihelion_documents::significant_words;
use serde_json::json;

use super::{Passage, Work};
use crate::pipeline::{Stage, StageError};

/// Returns the range of a text in which paragraphs have most words of each statement; its quote, where no paragraph has
/// more of them.
fn supporting(text: &str, quote: &str, statements: &[String]) -> Option<Range<usize>> {
    let start = text.find(quote)?;
    let quote = start..start + quote.len();
    let mut at = 0;
    let mut paragraphs: Vec<Range<usize>> = Vec::new();
    for part in text.split_inclusive("\n\n") {
        let paragraph = part.trim();
        let start = at + (part.len() - part.trim_start().len());
        paragraphs.push(start..start + paragraph.len());
        at += part.len();
    }
    let of_statement = |statement: &String| {
        let wanted = significant_words(statement);
        let shared = |range: &Range<usize>| {
            significant_words(&text[range.clone()]).intersection(&wanted).count()
        };
        let best = paragraphs.iter().max_by_key(|range| (shared(range), Reverse(range.start)));
        best.filter(|best| shared(best) > shared(&quote)).unwrap_or(&quote).clone()
    };
    let ranges: Vec<Range<usize>> = statements.iter().map(of_statement).collect();
    let start = ranges.iter().map(|range| range.start).min()?;
    let end = ranges.iter().map(|range| range.end).max()?;
    Some(start..end)
}

impl Passage {
    /// Returns where in its document statements rest on something else than its quote.
    fn elsewhere(&self, statements: &[String]) -> Option<(super::Range, String)> {
        let text = self.context.as_deref()?;
        let parent = self.parent?;
        let range = supporting(text, &self.quote, statements)?;
        let quote = &text[range.clone()];
        let start = parent.start + text[..range.start].chars().count() as u64;
        let end = start + quote.chars().count() as u64;
        (quote != self.quote).then(|| (super::Range { start, end }, quote.to_owned()))
    }

    /// Returns the passage with the quote on which statements rest; its page and section are read with it.
    pub(super) async fn quoted_for(
        &self,
        stage: &Stage<Work>,
        statements: &[String],
    ) -> Result<Self, StageError> {
        let found = self.elsewhere(statements).filter(|_| stage.budget().tool_calls > 0);
        let Some((super::Range { start, end }, quote)) = found else {
            return Ok(self.clone());
        };
        let place = json!({ "document": self.document, "start": start, "end": end });
        let read = stage.follow_all("read", [place]).await?.pop();
        let read = read.filter(|reply| !reply.is_error).and_then(|reply| reply.structured);
        // The text must be the quoted one; otherwise the document has another version by now.
        let Some(read) = read.filter(|read| read["text"] == quote.as_str()) else {
            return Ok(self.clone());
        };
        let section = read["section"].as_array().map(|titles| {
            titles.iter().filter_map(|title| title.as_str()).collect::<Vec<_>>().join(" › ")
        });
        Ok(Self {
            start: Some(start),
            end: Some(end),
            quote,
            page: read["page"].as_u64(),
            section: section.filter(|section| !section.is_empty()),
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.06
    #[test]
    fn a_quote_is_the_paragraph_that_has_the_words_of_the_statement() {
        let text = "# Lease\n\nThe notice is three months.\n\nIt is written.\n\nWho pays late owes a penalty of 5 %.";
        let quote = "The notice is three months.";
        for (statements, wanted) in [
            (&["Notice takes three months"][..], quote),
            (&["The penalty is 5 %"], "Who pays late owes a penalty of 5 %."),
            (&["Der Mieter zahlt"], quote),
            (&["The penalty is 5 %", "Notice takes three months"], &text[9..]),
            (&[], ""),
        ] {
            let statements: Vec<String> = statements.iter().map(ToString::to_string).collect();
            let found = supporting(text, quote, &statements).map(|range| &text[range]);
            assert_eq!(found.unwrap_or_default(), wanted, "{statements:?}");
        }
        assert_eq!(supporting(text, "elsewhere", &["The penalty".to_owned()]), None);
    }
}
