//! Finds pages, starting with those in the task; reads them, several at once, and extracts the relevant parts.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Hit, PAGES, Passage, Work, WorkUpdate};
use crate::lenient;
use crate::pipeline::{Stage, StageResult, Step, ToolReply};
use perihelion_documents::significant_words;
use perihelion_web::mentions_in;

/// Characters of a passage, and passages of one page.
const LONGEST: usize = 1_500;
const OF_PAGE: usize = 3;

pub(super) async fn fetch(stage: Stage<Work>) -> StageResult<Work> {
    let found = stage.state().passages.clone();
    let (pages, unread) = found.split_at(found.len().min(stage.budget().tool_calls));
    stage.progress(format!("reading {} page(s)", pages.len()));
    let addresses = pages.iter().map(|page| json!({ "url": page.document }));
    let replies = stage.follow_all("fetch", addresses).await?;
    let words = significant_words(stage.query());
    let mut passages = Vec::new();
    let mut remarks = stage.state().remarks.clone();
    // The search result of a page that was not read may still answer the question.
    let has_snippet = |page: &&Passage| !page.quote.is_empty();
    for (page, reply) in pages.iter().zip(replies) {
        if reply.is_error {
            remarks.push(format!("{}: {}", page.document, reply.text));
            passages.extend(Some(page).filter(has_snippet).cloned());
            continue;
        }
        passages.extend(of_page(page, &reply, &words));
    }
    passages.extend(unread.iter().filter(has_snippet).cloned());
    Ok(Step::next(WorkUpdate::new().passages(passages).remarks(remarks)))
}

/// Takes the parts of a page that share the most words with the question, in the page's order.
fn of_page(page: &Passage, reply: &ToolReply, words: &BTreeSet<String>) -> Vec<Passage> {
    let read = |field: &str| {
        let field = reply.structured.as_ref().and_then(|data| data[field].as_str());
        field.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let text = read("text").unwrap_or_else(|| reply.text.clone());
    let title = read("title").unwrap_or_else(|| page.title.clone());
    let address = read("url").unwrap_or_else(|| page.document.clone());
    let parts = parts(&text);
    let mut best: Vec<usize> = (0..parts.len()).collect();
    let shared = |part: &str| significant_words(part).intersection(words).count();
    best.sort_by_cached_key(|place| std::cmp::Reverse(shared(&parts[*place])));
    best.truncate(OF_PAGE);
    best.sort_unstable();
    let passage = |place: usize| Passage {
        document: address.clone(),
        title: title.clone(),
        section: Some(address.clone()),
        quote: parts[place].clone(),
        ..Passage::default()
    };
    best.into_iter().map(passage).collect()
}

/// Cuts a text into paragraphs, short ones joined and long ones cut.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for paragraph in text.split("\n\n").map(str::trim).filter(|text| !text.is_empty()) {
        let letters: Vec<char> = paragraph.chars().collect();
        for piece in letters.chunks(LONGEST) {
            let piece: String = piece.iter().collect();
            match parts.last_mut() {
                Some(last) if last.chars().count() + piece.chars().count() < LONGEST => {
                    last.push_str("\n\n");
                    last.push_str(&piece);
                }
                _ => parts.push(piece),
            }
        }
    }
    parts
}

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
                let hits = results.iter().filter_map(lenient::read::<Hit>);
                pages.extend(hits.filter(|hit| !hit.url.is_empty()));
            }
            _ => remarks.push(reply.text),
        }
    }
    let mut known = BTreeSet::new();
    pages.retain(|page| known.insert(page.url.clone()));
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

fn addresses(text: &str) -> Vec<Hit> {
    let named = mentions_in(text).into_iter().map(|one| one.written);
    named
        .filter(|url| url.starts_with("http://") || url.starts_with("https://"))
        .map(|url| Hit { title: url.clone(), url, ..Hit::default() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_relevant_parts_of_a_page_are_returned() {
        let filler = "Nothing of interest stands here. ".repeat(40);
        let text =
            format!("{filler}\n\n{filler}\n\nHigh tides come twice a day.\n\n{filler}\n\n{filler}");
        let parts = parts(&text);
        let wanted = significant_words("When do high tides come?");
        let shared = |part: &&String| significant_words(part).intersection(&wanted).count();
        let best = parts.iter().max_by_key(shared).unwrap();
        assert!(best.contains("twice a day") && best.chars().count() <= LONGEST, "{best}");
    }
}

#[cfg(test)]
mod search_tests {
    use super::*;

    #[test]
    fn addresses_are_found_without_the_punctuation_of_their_sentence() {
        let found =
            addresses("Read (https://sea.test/a?b=1), then https://sea.test/c. Not ftp://x.");
        let found: Vec<&str> = found.iter().map(|hit| hit.url.as_str()).collect();
        assert_eq!(found, ["https://sea.test/a?b=1", "https://sea.test/c"]);
    }

    #[test]
    fn questions_about_recent_events_search_the_news() {
        assert_eq!((kind_of("The latest on tides"), kind_of("What are tides?")), ("news", "basic"));
    }
}
