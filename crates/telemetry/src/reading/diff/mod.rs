//! Two traces side by side: aligned as trees, and what differs.
//!
//! Siblings are aligned by a longest common subsequence of their descriptions; spans of the same kind in the same gap
//! count as one changed span. Time, tokens and cost vary from run to run, so they are reported but are no difference.

pub(super) mod changes;

use std::collections::HashMap;

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::{About, Span, SpanId};

pub use changes::Change;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceDiff {
    /// In the order of the tree, parents before their children.
    pub pairs: Vec<Pair>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// 0 for the roots.
    pub depth: usize,
    pub kind: PairKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<SpanId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<SpanId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PairKind {
    Same,
    Changed,
    OnlyA,
    OnlyB,
}

impl TraceDiff {
    pub fn is_same(&self) -> bool {
        self.pairs.iter().all(|pair| pair.kind == PairKind::Same)
    }

    pub fn count(&self, kind: PairKind) -> usize {
        self.pairs.iter().filter(|pair| pair.kind == kind).count()
    }
}

/// Aligns two traces and lists the differences; the root must be the first span of each.
pub fn compare(a: &[Span], b: &[Span]) -> TraceDiff {
    let mut diff = Diff { a: children(a), b: children(b), pairs: Vec::new() };
    if a.len() + b.len() > 0 {
        diff.pair(a.first(), b.first(), 0);
    }
    TraceDiff { pairs: diff.pairs }
}

type Children<'a> = HashMap<SpanId, Vec<&'a Span>>;

fn children(spans: &[Span]) -> Children<'_> {
    let mut children = Children::new();
    for span in spans {
        if let Some(parent) = span.parent {
            children.entry(parent).or_default().push(span);
        }
    }
    children
}

fn below<'a>(children: &Children<'a>, span: Option<&Span>) -> Vec<&'a Span> {
    span.and_then(|span| children.get(&span.span_id)).cloned().unwrap_or_default()
}

struct Diff<'a> {
    a: Children<'a>,
    b: Children<'a>,
    pairs: Vec<Pair>,
}

impl Diff<'_> {
    /// Adds two corresponding spans, or one that only one trace has, with all below them.
    fn pair(&mut self, a: Option<&Span>, b: Option<&Span>, depth: usize) {
        let both = a.zip(b);
        let changes = both.map(|(a, b)| changes::between(a, b)).unwrap_or_default();
        let kind = match (a, b) {
            (Some(_), None) => PairKind::OnlyA,
            (None, _) => PairKind::OnlyB,
            _ if changes.is_empty() => PairKind::Same,
            _ => PairKind::Changed,
        };
        let id = |span: &Span| span.span_id;
        self.pairs.push(Pair { depth, kind, a: a.map(id), b: b.map(id), changes });
        for (a, b) in align(&below(&self.a, a), &below(&self.b, b)) {
            self.pair(a, b, depth + 1);
        }
    }
}

type Aligned<'a> = Vec<(Option<&'a Span>, Option<&'a Span>)>;

/// Pairs siblings up, in the order of both.
fn align<'a>(a: &[&'a Span], b: &[&'a Span]) -> Aligned<'a> {
    let names = |spans: &[&Span]| spans.iter().map(|span| what(span)).collect::<Vec<_>>();
    let ops = capture_diff_slices(Algorithm::Myers, &names(a), &names(b));
    let mut aligned = Aligned::new();
    for op in ops {
        let from_a = &a[op.old_range()];
        let from_b = &b[op.new_range()];
        match op {
            DiffOp::Equal { .. } => {
                let pairs = from_a.iter().zip(from_b);
                aligned.extend(pairs.map(|(a, b)| (Some(*a), Some(*b))));
            }
            _ => in_the_gap(from_a, from_b, &mut aligned),
        }
    }
    aligned
}

/// Pairs spans of the same kind in the same gap, without crossing.
fn in_the_gap<'a>(a: &[&'a Span], b: &[&'a Span], aligned: &mut Aligned<'a>) {
    let mut next = 0;
    for one in a {
        let met = b[next..].iter().position(|other| kind(one) == kind(other));
        match met {
            Some(skipped) => {
                aligned.extend(b[next..next + skipped].iter().map(|b| (None, Some(*b))));
                aligned.push((Some(one), Some(b[next + skipped])));
                next += skipped + 1;
            }
            None => aligned.push((Some(one), None)),
        }
    }
    aligned.extend(b[next..].iter().map(|b| (None, Some(*b))));
}

/// Describes a span as exactly as possible without its outcome.
fn what(span: &Span) -> String {
    match &span.about {
        // The model is part of a call's name, and comparing models is what a diff is for.
        About::Chat { role, .. } => format!("chat {role}"),
        About::Tool { server, tool, arguments, .. } => {
            format!("tool {server}.{tool} {}", arguments.as_deref().unwrap_or_default())
        }
        _ => span.name.clone(),
    }
}

fn kind(span: &Span) -> (u8, &str) {
    match &span.about {
        About::Workflow { .. } => (0, ""),
        About::Transition { from, .. } => (1, from),
        About::Chat { role, .. } => (2, role),
        About::Agent { agent, .. } => (3, agent),
        About::Tool { tool, .. } => (4, tool),
        About::Reflection { .. } => (5, ""),
        About::Question { interrupt_kind, .. } => (6, interrupt_kind),
        About::Stage { stage, .. } => (7, stage),
    }
}

#[cfg(test)]
mod tests;
