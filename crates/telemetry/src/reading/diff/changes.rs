//! What differs between two spans that are taken as the same thing.

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use crate::{About, Span, Status};

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// `to`, `reason`, `verdict`, `attempts`, `status`, `model`, `answer`, `arguments` and the like.
    pub what: &'static str,
    /// `-` where there is nothing on that side.
    pub a: String,
    pub b: String,
    /// For texts: what changed, in the notation of `git diff --word-diff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// Compares two spans of the same kind in everything but time, tokens, cost and ids.
pub(super) fn between(a: &Span, b: &Span) -> Vec<Change> {
    let mut list = List(Vec::new());
    match (&a.about, &b.about) {
        (
            About::Workflow { graph, runs, question, answer, .. },
            About::Workflow { graph: g, runs: r, question: q, answer: w, .. },
        ) => {
            list.value("graph", graph, g);
            let ended = |runs: &[crate::RunOfTrace]| {
                runs.last().map_or("-", |run| run.status.as_str()).to_owned()
            };
            list.value("ended", &ended(runs), &ended(r));
            list.text("question", question, q);
            list.text("answer", answer, w);
        }
        (
            About::Transition { to, reason, candidates, thought, .. },
            About::Transition { to: t, reason: r, candidates: c, thought: h, .. },
        ) => {
            list.value("to", &to.join(", "), &t.join(", "));
            list.value("reason", reason.as_str(), r.as_str());
            list.value("candidates", &candidates.join(", "), &c.join(", "));
            list.text("thought", thought, h);
        }
        (
            About::Chat { model, finish_reason, attempts, output, calls, .. },
            About::Chat { model: m, finish_reason: f, attempts: n, output: o, calls: c, .. },
        ) => {
            let asked = |calls: &[perihelion_llm::ToolCall]| {
                let calls = calls.iter().map(|call| format!("{}({})", call.name, call.arguments));
                calls.collect::<Vec<_>>().join(", ")
            };
            list.maybe("model", model, m);
            list.maybe("finish", finish_reason, f);
            list.value("sent", &times(*attempts), &times(*n));
            list.text("output", output, o);
            list.value("calls", &asked(calls), &asked(c));
        }
        (
            About::Agent { reflection_status, attempts, task, output, error, .. },
            About::Agent {
                reflection_status: s, attempts: n, task: t, output: o, error: e, ..
            },
        ) => {
            let rounds = |number: &Option<u32>| number.map(|number| number.to_string());
            list.maybe("verdict", reflection_status, s);
            list.maybe("attempts", &rounds(attempts), &rounds(n));
            list.text("task", task, t);
            list.text("output", output, o);
            list.text("failed", error, e);
        }
        (About::Stage { stage, error, .. }, About::Stage { stage: s, error: e, .. }) => {
            list.value("stage", stage, s);
            list.text("failed", error, e);
        }
        (
            About::Tool { server, attempts, arguments, result, .. },
            About::Tool { server: s, attempts: n, arguments: g, result: r, .. },
        ) => {
            list.value("server", server, s);
            list.value("sent", &times(*attempts), &times(*n));
            list.text("arguments", arguments, g);
            list.text("result", result, r);
        }
        (
            About::Reflection { verdict, attempt, feedback, .. },
            About::Reflection { verdict: v, attempt: n, feedback: f, .. },
        ) => {
            list.maybe("verdict", verdict, v);
            list.value("attempt", &attempt.to_string(), &n.to_string());
            list.text("feedback", feedback, f);
        }
        (About::Question { answered, .. }, About::Question { answered: b, .. }) => {
            let word = |answered: bool| if answered { "answered" } else { "open" };
            list.value("question", word(*answered), word(*b));
        }
        _ => list.value("kind", &a.name, &b.name),
    }
    list.value("status", &status(a), &status(b));
    list.0
}

struct List(Vec<Change>);

impl List {
    fn value(&mut self, what: &'static str, a: &str, b: &str) {
        if a != b {
            let word = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
            self.0.push(Change { what, a: word(a), b: word(b), words: None });
        }
    }

    fn maybe(&mut self, what: &'static str, a: &Option<String>, b: &Option<String>) {
        self.value(what, a.as_deref().unwrap_or_default(), b.as_deref().unwrap_or_default());
    }

    fn text(&mut self, what: &'static str, a: &Option<String>, b: &Option<String>) {
        let a = a.as_deref().unwrap_or_default();
        let b = b.as_deref().unwrap_or_default();
        if let Some(words) = changed(a, b) {
            self.value(what, a, b);
            if let Some(change) = self.0.last_mut().filter(|_| !a.is_empty() && !b.is_empty()) {
                change.words = Some(words);
            }
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

/// Returns what changed, as `kept [-removed-] {+added+} kept …`; none when nothing did.
pub(in crate::reading) fn changed(before: &str, after: &str) -> Option<String> {
    if before == after {
        return None;
    }
    let before = head(before);
    let after = head(after);
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

fn head(text: &str) -> &str {
    let end = (0..=COMPARED.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
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
