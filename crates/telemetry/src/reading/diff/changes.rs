//! What differs between two spans that are taken as the same thing.

use serde::Serialize;

use super::super::words::changed;
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
