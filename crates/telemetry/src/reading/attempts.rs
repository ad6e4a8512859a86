//! The repetitions of a run: loops, repairs, and the changes between attempts.

use std::collections::HashMap;

use serde::Serialize;

use super::diff::changes::changed;
use crate::{About, Reason, Span, SpanId};

/// A note about a span that depends on its neighbors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    pub span_id: SpanId,
    pub kind: NoteKind,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The run took this way before.
    Loop,
    /// A model was asked again because its answer could not be used.
    Repair,
    /// The difference from the previous attempt, in the notation of `git diff --word-diff`.
    Changed,
}

/// Roles with one request per task, for one JSON answer; other roles make further requests without an error.
const ANSWER_IN_JSON: [&str; 3] = ["supervisor", "reflector", "architect"];

/// Finds loops, repairs and changes, in the order of the spans.
pub fn notes(spans: &[Span]) -> Vec<Note> {
    let mut notes = Vec::new();
    loops(spans, &mut notes);
    repairs(spans, &mut notes);
    rounds(spans, &mut notes);
    turns(spans, &mut notes);
    let places: HashMap<SpanId, usize> =
        spans.iter().enumerate().map(|(at, span)| (span.span_id, at)).collect();
    notes.sort_by_key(|note| places.get(&note.span_id).copied());
    notes
}

/// Counts how often a decision sent the run the same way.
fn loops(spans: &[Span], notes: &mut Vec<Note>) {
    let mut seen: HashMap<_, u32> = HashMap::new();
    for span in spans {
        let About::Transition { from, to, reason, .. } = &span.about else { continue };
        if matches!(reason, Reason::Edge | Reason::Edit | Reason::Undecided) {
            continue;
        }
        let mut repeated = Vec::new();
        for to in to {
            let times = seen.entry((span.within, from, to)).or_default();
            *times += 1;
            if *times > 1 {
                repeated.push(format!("{to} for the {} time", ordinal(*times)));
            }
        }
        if !repeated.is_empty() {
            let text = format!("to {}", repeated.join(", "));
            notes.push(Note { span_id: span.span_id, kind: NoteKind::Loop, text });
        }
    }
}

/// Finds calls that repair the answer of the previous one: same parent, same role, without other calls between them.
fn repairs(spans: &[Span], notes: &mut Vec<Note>) {
    let mut before: HashMap<Option<SpanId>, (&str, u32)> = HashMap::new();
    for span in spans {
        match &span.about {
            About::Chat { role, .. } if ANSWER_IN_JSON.contains(&role.as_str()) => {
                let known = before.get(&span.parent).filter(|(known, _)| known == role);
                let times = known.map_or(0, |(_, times)| times + 1);
                before.insert(span.parent, (role, times));
                if times > 0 {
                    let text = format!("asked again, {}: the answer could not be used", of(times));
                    notes.push(Note { span_id: span.span_id, kind: NoteKind::Repair, text });
                }
            }
            _ => {
                before.remove(&span.parent);
            }
        }
    }
}

fn rounds(spans: &[Span], notes: &mut Vec<Note>) {
    let outputs: HashMap<SpanId, &str> = spans
        .iter()
        .filter_map(|span| match &span.about {
            About::Chat { output: Some(output), .. } => Some((span.span_id, output.as_str())),
            _ => None,
        })
        .collect();
    let draft = |span: &Span| {
        let judged = span.links.iter().find(|link| link.kind == "judged")?;
        outputs.get(&judged.span_id).copied()
    };
    let mut before: HashMap<Option<SpanId>, &Span> = HashMap::new();
    for span in spans {
        if !matches!(span.about, About::Reflection { .. }) {
            continue;
        }
        let older = before.insert(span.parent, span);
        let Some((older, newer)) = older.and_then(draft).zip(draft(span)) else { continue };
        let text = changed(older, newer).unwrap_or_else(|| "nothing".to_owned());
        notes.push(Note { span_id: span.span_id, kind: NoteKind::Changed, text });
    }
}

/// Compares an agent's task with the one it had before in the same run.
fn turns(spans: &[Span], notes: &mut Vec<Note>) {
    let mut before: HashMap<_, &str> = HashMap::new();
    for span in spans {
        let About::Agent { agent, task: Some(task), .. } = &span.about else { continue };
        let Some(older) = before.insert((span.within, agent), task) else { continue };
        let text = match changed(older, task) {
            Some(text) => format!("task: {text}"),
            None => "the same task as before".to_owned(),
        };
        notes.push(Note { span_id: span.span_id, kind: NoteKind::Changed, text });
    }
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

fn of(times: u32) -> String {
    match times {
        1 => "once".to_owned(),
        more => format!("the {} time", ordinal(more)),
    }
}
