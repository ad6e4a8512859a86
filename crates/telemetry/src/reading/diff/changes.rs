//! The differences between two corresponding spans.

use std::mem::discriminant;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use crate::{About, Span, Status};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// `to`, `reason`, `verdict`, `attempts`, `status`, `model`, `answer`, `arguments` and the like.
    pub what: &'static str,
    /// `-` for a missing side.
    pub a: String,
    pub b: String,
    /// For texts: the changes, in the notation of `git diff --word-diff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// Compares two spans in everything but time, tokens, cost and ids.
pub(super) fn between(a: &Span, b: &Span) -> Vec<Change> {
    let is_same_kind = discriminant(&a.about) == discriminant(&b.about);
    let pairs = facts(a, is_same_kind).into_iter().zip(facts(b, is_same_kind));
    let differing = pairs.filter(|(a, b)| a.text != b.text);
    let word = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let change = |(a, b): (Fact, Fact)| {
        let is_prose = a.is_prose && !a.text.is_empty() && !b.text.is_empty();
        let words = is_prose.then(|| changed(&a.text, &b.text)).flatten();
        Change { what: a.what, a: word(a.text), b: word(b.text), words }
    };
    differing.map(change).collect()
}

/// One thing about a span that another span of its kind has as well.
struct Fact {
    what: &'static str,
    text: String,
    /// Its changes are shown word by word.
    is_prose: bool,
}

fn value(what: &'static str, text: impl Into<String>) -> Fact {
    Fact { what, text: text.into(), is_prose: false }
}

fn prose(what: &'static str, text: &Option<String>) -> Fact {
    Fact { what, text: text.clone().unwrap_or_default(), is_prose: true }
}

/// Lists what is compared of a span; of one that is compared with another kind, its name.
fn facts(span: &Span, is_same_kind: bool) -> Vec<Fact> {
    let mut facts =
        if is_same_kind { of_kind(&span.about) } else { vec![value("kind", &span.name)] };
    facts.push(value("status", status(span)));
    facts
}

fn of_kind(about: &About) -> Vec<Fact> {
    let maybe = |what, text: &Option<String>| value(what, text.clone().unwrap_or_default());
    match about {
        About::Workflow { graph, runs, question, answer, .. } => vec![
            value("graph", graph),
            value("ended", runs.last().map_or("-", |run| run.status.as_str())),
            prose("question", question),
            prose("answer", answer),
        ],
        About::Transition { to, reason, candidates, thought, .. } => vec![
            value("to", to.join(", ")),
            value("reason", reason.as_str()),
            value("candidates", candidates.join(", ")),
            prose("thought", thought),
        ],
        About::Chat { model, finish_reason, attempts, output, calls, .. } => {
            let calls = calls.iter().map(|call| format!("{}({})", call.name, call.arguments));
            vec![
                maybe("model", model),
                maybe("finish", finish_reason),
                value("sent", times(*attempts)),
                prose("output", output),
                value("calls", calls.collect::<Vec<_>>().join(", ")),
            ]
        }
        About::Agent { reflection_status, attempts, task, output, error, .. } => vec![
            maybe("verdict", reflection_status),
            maybe("attempts", &attempts.map(|number| number.to_string())),
            prose("task", task),
            prose("output", output),
            prose("failed", error),
        ],
        About::Stage { stage, error, .. } => vec![value("stage", stage), prose("failed", error)],
        About::Tool { server, attempts, arguments, result, .. } => vec![
            value("server", server),
            value("sent", times(*attempts)),
            prose("arguments", arguments),
            prose("result", result),
        ],
        About::Reflection { verdict, attempt, feedback, .. } => vec![
            maybe("verdict", verdict),
            value("attempt", attempt.to_string()),
            prose("feedback", feedback),
        ],
        About::Question { answered, .. } => {
            vec![value("question", if *answered { "answered" } else { "open" })]
        }
    }
}

fn times(number: u32) -> String {
    match number {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        more => format!("{more} times"),
    }
}

fn status(span: &Span) -> String {
    match &span.status {
        Status::Error { message } => format!("error: {message}"),
        _ if span.open => "not over".to_owned(),
        Status::Ok | Status::Unset => "ok".to_owned(),
    }
}

/// Bytes of each text that are compared; the work grows with the product of what differs.
const COMPARED: usize = 8 * 1024;

/// Words kept on each side of a change.
const CONTEXT: usize = 3;

/// Returns the changes, as `kept [-removed-] {+added+} kept …`; `None` without any.
pub(in crate::reading) fn changed(before: &str, after: &str) -> Option<String> {
    if before == after {
        return None;
    }
    let before = &before[..before.floor_char_boundary(COMPARED)];
    let after = &after[..after.floor_char_boundary(COMPARED)];
    let diff = TextDiff::from_words(before, after);
    let mut runs: Vec<(ChangeTag, String)> = Vec::new();
    for change in diff.iter_all_changes() {
        let tag = change.tag();
        let word = change.value();
        match runs.last_mut() {
            Some((known, text)) if *known == tag => text.push_str(word),
            _ => runs.push((tag, word.to_owned())),
        }
    }
    let newest = runs.len().saturating_sub(1);
    let mut parts = Vec::new();
    for (at, (tag, text)) in runs.iter().enumerate() {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        parts.push(match tag {
            ChangeTag::Delete => format!("[-{}-]", words.join(" ")),
            ChangeTag::Insert => format!("{{+{}+}}", words.join(" ")),
            ChangeTag::Equal => kept(&words, at == 0, at == newest),
        });
    }
    if parts.iter().any(|part| part.starts_with(['[', '{'])) {
        Some(parts.join(" "))
    } else {
        Some("beyond the first 8 KiB, or in spaces only".to_owned())
    }
}

fn kept(words: &[&str], first: bool, last: bool) -> String {
    let head = if first { 0 } else { CONTEXT };
    let tail = if last { 0 } else { CONTEXT };
    if words.len() <= head + tail + 1 {
        return words.join(" ");
    }
    let before = &words[..head];
    let after = &words[words.len() - tail..];
    [before, &["…"], after].concat().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_between_a_few_unchanged_words() {
        assert_eq!(changed("same", "same"), None);
        assert_eq!(
            changed("zero one two three four five six", "zero one two three four 5 six").unwrap(),
            "… two three four [-five-] {+5+} six"
        );
        assert_eq!(changed("", "new").unwrap(), "{+new+}");
        assert_eq!(changed("a b", "a  b").unwrap(), "beyond the first 8 KiB, or in spaces only");
    }
}
