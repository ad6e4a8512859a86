//! How well an operation's path and method fit the wanted action of a question.

use super::question::{DELETES, Intent, Question, READS};
use super::text::{split, stems};
use super::words::{stem, words};
use crate::Operation;

/// The cost of each word of a path that the question does not name.
const BESIDES: f64 = 0.93;

pub struct Shape {
    /// Stems of the words in its path, each once.
    path: Vec<String>,
    /// Stems of the last word of its path that is no placeholder.
    last: Vec<String>,
    /// Stems of the words right before a placeholder: the things of which it takes one.
    of_one: Vec<String>,
    /// Stems of its summary, without what every summary has.
    summary: Vec<String>,
    /// Stems of the words for its action: its summary's first, those of its name and of its path's end.
    deeds: Vec<String>,
    /// It addresses one thing: its path ends with a placeholder.
    is_item: bool,
    is_search: bool,
    /// It is about the person who asks.
    is_own: bool,
    pub is_destructive: bool,
    method: Method,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Read,
    Post,
    Change,
    Delete,
}

impl Shape {
    pub fn new(operation: &Operation) -> Self {
        let segments = operation.path.split(['/', '.', '?', '#']);
        let segments: Vec<&str> = segments.filter(|segment| !segment.is_empty()).collect();
        let fixed: Vec<&&str> = segments.iter().filter(|segment| !segment.contains('{')).collect();
        let things = |segment: &str| -> Vec<String> {
            let words = split(segment).to_lowercase();
            let words =
                words.split_whitespace().filter(|word| !READS.contains(word) && !is_common(word));
            words.map(stem).collect()
        };
        let mut path: Vec<String> = fixed.iter().flat_map(|segment| things(segment)).collect();
        path.sort();
        path.dedup();
        // `files.list` ends with files.
        let last =
            fixed.iter().rev().map(|segment| things(segment)).find(|words| !words.is_empty());
        let last = last.unwrap_or_default();
        let end = fixed.last().map(|segment| stems(segment)).unwrap_or_default();
        let is_item = segments.last().is_some_and(|segment| segment.contains('{'));
        let deletes = |words: &[String]| words.iter().any(|word| DELETES.contains(&word.as_str()));
        let method = match operation.method.as_str() {
            "DELETE" => Method::Delete,
            "POST" => Method::Post,
            "PUT" | "PATCH" => Method::Change,
            _ => Method::Read,
        };
        let of_one = segments.windows(2).filter(|pair| pair.iter().any(|s| s.contains('{')));
        let of_one = of_one.filter_map(|pair| pair.first()).flat_map(|segment| stems(segment));
        let text =
            if operation.summary.is_empty() { &operation.description } else { &operation.summary };
        let mut deeds: Vec<String> = words(text).filter(|word| word.len() > 1).take(1).collect();
        if operation.method != "DELETE" {
            // `DELETE /projects/{id}/fork` does not fork.
            deeds.extend(stems(&operation.id));
            deeds.extend(end.iter().cloned());
        }
        Self {
            of_one: of_one.collect(),
            summary: Question::read(&operation.summary).things,
            deeds,
            is_search: fixed.iter().flat_map(|segment| stems(segment)).any(|word| is_search(&word)),
            is_own: fixed.iter().any(|segment| matches!(**segment, "me" | "my" | "self")),
            is_destructive: method == Method::Delete
                || (method != Method::Read && (deletes(&end) || deletes(&stems(&operation.id)))),
            path,
            last,
            is_item,
            method,
        }
    }

    /// Returns by how much an operation that shares words with a question is better or worse than those words say.
    pub fn fit(&self, question: &Question) -> f64 {
        let path = agreement(&self.path, question);
        let ends = !self.last.is_empty() && self.last.iter().all(|word| names(question, word));
        let summary = agreement(&self.summary, question);
        let place = 1.0 + path * if ends { 4.0 } else { 2.0 } + 2.0 * summary;
        let more = self.path.iter().filter(|word| !names(question, word)).count();
        let more = more + usize::from(self.is_own && !question.is_own);
        place * BESIDES.powi(more.min(4) as i32) * self.count(question) * self.method(question)
    }

    /// Weighs one thing against all of them.
    fn count(&self, question: &Question) -> f64 {
        let last =
            |is: fn(&Question, &str) -> bool| self.last.iter().any(|word| is(question, word));
        let takes_one = self.of_one.iter().any(|word| question.is_single(word));
        let (wants_one, weight) = match question.intent {
            Intent::Read if last(Question::is_plural) => (false, 1.4),
            Intent::Read if last(Question::is_single) => (true, 1.3),
            Intent::Read if question.is_list() => (false, 1.1),
            Intent::Read => return 1.0,
            Intent::Create => (false, 1.3),
            Intent::Update | Intent::Delete => (true, 1.3),
            // `POST /refunds` makes one; `POST /payments/{id}/cancel` takes one.
            Intent::Act => (false, if takes_one { 1.3 } else { 1.15 }),
        };
        if wants_one == self.is_item { weight } else { 1.0 / weight }
    }

    fn method(&self, question: &Question) -> f64 {
        let says_so = question.deed.as_ref().is_some_and(|deed| self.deeds.contains(deed));
        match (question.intent, self.method) {
            (Intent::Read, Method::Read | Method::Post) if self.is_search => {
                if question.is_search() { 1.6 } else { 0.65 }
            }
            (Intent::Read, Method::Read) => 1.0,
            (Intent::Read, _) if self.is_destructive => 0.2,
            (Intent::Read, _) => 0.5,
            (_, Method::Read) => 0.4,
            (Intent::Delete, _) if self.is_destructive => 1.3,
            (Intent::Delete, _) => 0.4,
            (_, _) if says_so => 1.3,
            (_, _) if self.is_destructive => 0.3,
            (Intent::Create, Method::Post) | (Intent::Update, Method::Change) => 1.3,
            (Intent::Update, Method::Post) | (Intent::Act, Method::Post | Method::Change) => 1.1,
            (_, _) => 0.8,
        }
    }
}

/// Returns how well words match the request: all of it, and no other words.
fn agreement(words: &[String], question: &Question) -> f64 {
    let things = &question.things;
    let covered = things.iter().filter(|thing| words.iter().any(|word| is_same(word, thing)));
    let covered = covered.count() as f64 / things.len().max(1) as f64;
    let precise = words.iter().filter(|word| names(question, word)).count();
    // A long question shares some word with everything.
    covered.powf((things.len() as f64 / 3.0).clamp(1.0, 2.0)) * precise as f64
        / words.len().max(1) as f64
}

fn names(question: &Question, word: &str) -> bool {
    question.things.iter().chain(&question.verbs).any(|named| is_same(word, named))
}

fn is_search(word: &str) -> bool {
    matches!(word, "search" | "find" | "lookup" | "query")
}

/// Returns whether two stems name one thing: they are equal, or a path abbreviates it.
fn is_same(word: &str, thing: &str) -> bool {
    word == thing || (word.len() >= 3 && thing.len() >= word.len() + 4 && thing.starts_with(word))
}

/// Returns whether a word of a path is there for other reasons than its subject.
fn is_common(word: &str) -> bool {
    let number = word.trim_start_matches('v');
    matches!(word, "api" | "rest" | "json" | "rpc" | "me" | "my" | "self")
        || number.chars().all(|c| c.is_ascii_digit())
}
