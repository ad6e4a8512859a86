//! Two runs, step by step.

use serde::Serialize;
use serde_json::{Value, json};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::changes::{Change, changes};
use super::part::{Effect, Part, StepOf, Totals};
use perihelion_engine::checkpoint::{EffectKind, Error, Store};
use perihelion_engine::ids::ThreadId;

/// How long an agent worked, as the star records and keeps it; never the same twice.
const LATENCY: &str = "latency_ms";

#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    pub same: bool,
    /// Steps that are one and the same row of the history both share, from the first on.
    pub shared: u64,
    pub a: Side,
    pub b: Side,
    /// The steps after the shared ones, aligned by the nodes that ran.
    pub steps: Vec<Pair>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Side {
    pub thread_id: ThreadId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `None` for the whole thread.
    pub run: Option<u32>,
    pub totals: Totals,
}

/// Two corresponding steps; the side without such a step is `None`.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    pub a: Option<u64>,
    pub b: Option<u64>,
    pub nodes: Vec<String>,
    /// Empty where both did the same.
    pub differences: Vec<Difference>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    pub aspect: Aspect,
    /// The node; the role or tool for a call; empty for what runs next.
    pub of: String,
    pub changes: Vec<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    Nodes,
    /// An observation of a node, such as the agent catalog.
    Observed,
    /// A call or a question that only one of them made.
    Call,
    /// A request to a model, a tool or a person.
    Request,
    /// The answer to a request.
    Result,
    State,
    /// What runs next.
    Next,
}

/// Compares two runs of one thread or of two, or two whole threads.
///
/// # Errors
/// [`Error::UnknownRun`], and whatever the store reports.
pub async fn compare(
    store: &dyn Store,
    (thread_a, run_a): (ThreadId, Option<u32>),
    (thread_b, run_b): (ThreadId, Option<u32>),
) -> Result<Comparison, Error> {
    let a = Part::read(store, thread_a, run_a).await?;
    let b = Part::read(store, thread_b, run_b).await?;
    let is_shared = |(one, other): &(&StepOf, &StepOf)| {
        one.row.seq == other.row.seq
            && one.row.run == other.row.run
            && one.row.hash == other.row.hash
    };
    let shared = a.steps.iter().zip(&b.steps).take_while(is_shared).count();
    let keys = |part: &Part| -> Vec<String> {
        part.steps[shared..].iter().map(|step| step.nodes().join("\n")).collect()
    };
    let mut steps = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &keys(&a), &keys(&b)) {
        let left = &a.steps[shared..][op.old_range()];
        let right = &b.steps[shared..][op.new_range()];
        if matches!(op, DiffOp::Equal { .. }) {
            steps.extend(left.iter().zip(right).map(|(one, other)| pair(&a, one, &b, other)));
        } else {
            steps.extend(left.iter().map(|step| alone(step, true)));
            steps.extend(right.iter().map(|step| alone(step, false)));
        }
    }
    let same = steps.iter().all(|pair| pair.differences.is_empty());
    Ok(Comparison { same, shared: shared as u64, a: side(a), b: side(b), steps })
}

fn side(part: Part) -> Side {
    let Part { info, run, totals, .. } = part;
    Side { thread_id: info.id, title: info.title, run, totals }
}

fn alone(step: &StepOf, is_a: bool) -> Pair {
    let seq = Some(step.row.seq);
    let nodes: Vec<String> = step.nodes().into_iter().map(str::to_owned).collect();
    let here = Some(json!(nodes));
    let (before, after) = if is_a { (here, None) } else { (None, here) };
    let changes = vec![Change { path: String::new(), before, after }];
    let differences = vec![Difference { aspect: Aspect::Nodes, of: String::new(), changes }];
    let (a, b) = if is_a { (seq, None) } else { (None, seq) };
    Pair { a, b, nodes, differences }
}

fn pair(a: &Part, one: &StepOf, b: &Part, other: &StepOf) -> Pair {
    let mut differences = Vec::new();
    for (task, (node, wrote)) in one.wrote.iter().enumerate() {
        let task = task as u32;
        effects(a, &one.effects_of(task), b, &other.effects_of(task), &mut differences);
        if let Some((_, wrote_too)) = other.wrote.get(task as usize) {
            let found = changes(&a.plain(&timeless(wrote)), &b.plain(&timeless(wrote_too)));
            note(&mut differences, Aspect::State, node, found);
        }
    }
    note(&mut differences, Aspect::Next, "", changes(&a.plain(&one.next), &b.plain(&other.next)));
    let nodes = one.nodes().into_iter().map(str::to_owned).collect();
    Pair { a: Some(one.row.seq), b: Some(other.row.seq), nodes, differences }
}

fn note(differences: &mut Vec<Difference>, aspect: Aspect, of: &str, changes: Vec<Change>) {
    if !changes.is_empty() {
        differences.push(Difference { aspect, of: of.to_owned(), changes });
    }
}

/// Returns a node's write without the durations of its agents, which always differ.
fn timeless(wrote: &Value) -> Value {
    let mut wrote = wrote.clone();
    let results = wrote.get_mut("results").and_then(Value::as_array_mut);
    for fields in results.into_iter().flatten().filter_map(Value::as_object_mut) {
        fields.shift_remove(LATENCY);
    }
    wrote
}

/// Returns a response without its connection's data: connections count their requests across runs.
fn result(outcome: &Value) -> Value {
    let mut outcome = outcome.clone();
    for part in ["", "/Done", "/done"] {
        if let Some(fields) = outcome.pointer_mut(part).and_then(Value::as_object_mut) {
            fields.shift_remove("via");
        }
    }
    outcome
}

impl StepOf {
    /// Returns the calls, questions and observations of a task; readings of the clock and draws differ by nature.
    fn effects_of(&self, task: u32) -> Vec<&Effect> {
        let matters = |effect: &&Effect| match effect.kind {
            EffectKind::Clock | EffectKind::Random => false,
            EffectKind::Observed => effect.name != LATENCY,
            _ => true,
        };
        self.effects.iter().filter(|effect| effect.task == task).filter(matters).collect()
    }
}

/// Compares the requests and responses of one task; calls are aligned by their names.
fn effects(
    a: &Part,
    one: &[&Effect],
    b: &Part,
    other: &[&Effect],
    differences: &mut Vec<Difference>,
) {
    let names = |effects: &[&Effect]| -> Vec<String> {
        effects.iter().map(|effect| format!("{} {}", effect.kind.as_str(), effect.name)).collect()
    };
    for op in capture_diff_slices(Algorithm::Myers, &names(one), &names(other)) {
        let left = &one[op.old_range()];
        let right = &other[op.new_range()];
        if !matches!(op, DiffOp::Equal { .. }) {
            for effect in left {
                let before = Some(a.plain(&effect.request));
                let change = Change { path: String::new(), before, after: None };
                note(differences, Aspect::Call, &effect.name, vec![change]);
            }
            for effect in right {
                let after = Some(b.plain(&effect.request));
                let change = Change { path: String::new(), before: None, after };
                note(differences, Aspect::Call, &effect.name, vec![change]);
            }
            continue;
        }
        for (left, right) in left.iter().zip(right) {
            let both = |x: &Value, y: &Value| changes(&a.plain(x), &b.plain(y));
            let aspect = match left.kind {
                EffectKind::Observed => Aspect::Observed,
                _ => Aspect::Request,
            };
            note(differences, aspect, &left.name, both(&left.request, &right.request));
            let one = result(&left.outcome);
            let other = result(&right.outcome);
            note(differences, Aspect::Result, &left.name, both(&one, &other));
        }
    }
}
