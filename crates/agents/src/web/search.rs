//! Finds pages: those that the task names, then those that a search finds.

use serde_json::json;

use super::{Hit, PAGES, Passage, Work, WorkUpdate};
use crate::pipeline::{Stage, StageResult, Step};

/// Words that ask for what is new.
const NEWS: [&str; 6] = ["news", "today", "latest", "yesterday", "this week", "breaking"];
/// Characters of a question that a search engine is given.
const QUERY: usize = 400;

pub(super) async fn search(stage: Stage<Work>) -> StageResult<Work> {
    let mut pages: Vec<Hit> = addresses(stage.task());
    for output in &stage.assignment().dependency_outputs {
        pages.extend(addresses(&output.output));
    }
    let mut remarks = Vec::new();
    if pages.is_empty() && stage.has_tool("search") {
        let query: String = stage.query().chars().take(QUERY).collect();
        stage.progress(format!("searching for: {}", query.chars().take(100).collect::<String>()));
        let arguments = json!({ "query": query, "kind": kind_of(stage.query()) });
        let reply = stage.call("search", arguments).await?;
        match reply.structured.as_ref().and_then(|data| data["results"].as_array()) {
            Some(results) if !reply.is_error => {
                let hits =
                    results.iter().filter_map(|hit| serde_json::from_value(hit.clone()).ok());
                pages.extend(hits.filter(|hit: &Hit| !hit.url.is_empty()));
            }
            _ => remarks.push(reply.text),
        }
    }
    pages.dedup_by(|one, other| one.url == other.url);
    pages.truncate(PAGES);
    // Until its page is read, a result stands for itself.
    let passages = pages.into_iter().map(|hit| Passage {
        document: hit.url,
        title: hit.title,
        quote: hit.snippet,
        ..Passage::default()
    });
    Ok(Step::next(WorkUpdate::new().passages(passages.collect()).remarks(remarks)))
}

fn kind_of(task: &str) -> &'static str {
    let task = task.to_lowercase();
    if NEWS.iter().any(|word| task.contains(word)) { "news" } else { "basic" }
}

/// Finds the addresses that stand in a text.
fn addresses(text: &str) -> Vec<Hit> {
    let words = text.split(|c: char| c.is_whitespace() || "<>\"'()[]".contains(c));
    let words = words.map(|word| word.trim_end_matches(['.', ',', ';', ':', '!', '?']));
    words
        .filter(|word| word.starts_with("http://") || word.starts_with("https://"))
        .map(|url| Hit { url: url.to_owned(), title: url.to_owned(), ..Hit::default() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_without_what_a_sentence_puts_around_them() {
        let found =
            addresses("Read (https://sea.test/a?b=1), then https://sea.test/c. Not ftp://x.");
        let found: Vec<&str> = found.iter().map(|hit| hit.url.as_str()).collect();
        assert_eq!(found, ["https://sea.test/a?b=1", "https://sea.test/c"]);
    }

    #[test]
    fn what_is_new_is_searched_among_news() {
        assert_eq!((kind_of("The latest on tides"), kind_of("What are tides?")), ("news", "basic"));
    }
}
