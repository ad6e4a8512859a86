//! The report of a replay: how far it went, and how the first different step differs.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::outcome::Result;
use crate::checkpoint::StepRow;
use crate::graph::{BlobText, Command, EngineError, Frontier, State, StoredWrite};
use crate::ids::ThreadId;
use crate::journal::Missed;

/// How a replay went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayReport {
    /// The thread.
    #[serde(rename = "thread_id")]
    pub thread: ThreadId,
    /// The first step that was looked at.
    pub from: u64,
    /// Why the steps before `from` were left out, if there are any.
    pub left_out: Option<LeftOut>,
    /// Steps that were run again and committed the same bytes.
    pub replayed: u64,
    /// Inputs and edits, which are not computed again.
    pub taken: u64,
    /// Recorded effects that the steps run again can read.
    pub effects: u64,
    /// The first step that differs, if any; later steps were not checked.
    pub divergence: Option<Divergence>,
}

/// Why a replay does not begin at a thread's first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// The steps before were dropped.
    Pruned,
    /// They belong to a thread that is missing here, whose recorded effects were not shared.
    Foreign,
    /// Another run was asked for.
    OtherRun,
}

/// The place and kind of a difference between a replay and the recorded run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divergence {
    /// Number of the step.
    pub step: u64,
    /// The first node, in frontier order, that differs from the record.
    pub node: String,
    /// The difference, in a sentence.
    pub reason: String,
    /// The kind of `expected` and `actual`.
    pub about: About,
    /// What is stored.
    pub expected: Value,
    /// The result of the replay; null without one.
    pub actual: Value,
}

/// The part of a step in which the replay differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The request of an effect: of a model or tool call, or a question.
    Request,
    /// The node's update of the state.
    Update,
    /// What runs next.
    Next,
}

/// How a step that was run again differs from the recorded one.
pub(super) enum Difference {
    Written { delta: Vec<u8>, frontier: Vec<u8> },
    Failed { node: String, message: String, missed: Option<(u32, Missed)> },
}

/// Explains why a step that was committed cannot be committed by the replay.
pub(super) fn why<S: State>(command: Command<S>) -> (String, String) {
    match command {
        Command::Fail(EngineError::Node { node, message, .. }) => (node, message),
        Command::Fail(EngineError::UnknownTarget { node, target }) => {
            (node, format!("it leads to an unknown node: {target}"))
        }
        Command::Fail(EngineError::Missing { node, .. }) => {
            (node, "it no longer exists".to_owned())
        }
        Command::Fail(error) => (String::new(), error.to_string()),
        Command::Suspend(open) => {
            let node = open.into_iter().next().map_or_else(String::new, |one| one.node);
            (node, "it asks a person, which the recorded run did not".to_owned())
        }
        _ => (String::new(), "nothing was to run".to_owned()),
    }
}

/// Compares bytes, and if they differ the values, because the order of a hash map is not a difference.
pub(super) fn same_json(one: &[u8], other: &[u8]) -> bool {
    one == other || (!one.is_empty() && value(one) == value(other))
}

/// Compares a step of an earlier version, which contains its long texts, with the step that is written now.
pub(super) fn same_with_texts(recorded: &[u8], delta: &[u8], texts: &[BlobText]) -> bool {
    if texts.is_empty() {
        return false;
    }
    let mut whole = value(delta);
    let names = texts.iter().map(|text| (json!(text.name), &text.text)).collect::<Vec<_>>();
    put_back(&mut whole, &names);
    for one in whole.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        one.remove("b");
    }
    whole == value(recorded)
}

fn put_back(value: &mut Value, texts: &[(Value, &Arc<str>)]) {
    if let Some((_, text)) = texts.iter().find(|(name, _)| name == value) {
        *value = Value::String(text.to_string());
        return;
    }
    match value {
        Value::Array(list) => list.iter_mut().for_each(|one| put_back(one, texts)),
        Value::Object(fields) => fields.values_mut().for_each(|one| put_back(one, texts)),
        _ => {}
    }
}

fn value(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap_or(Value::Null)
}

/// Names the first node that differs, with its recorded and its present write.
pub(super) fn divergence(
    row: &StepRow,
    frontier: &Frontier,
    difference: Difference,
) -> Result<Divergence> {
    let stored = row.written()?;
    let step = row.seq;
    let (delta, next) = match difference {
        Difference::Written { delta, frontier } => (delta, frontier),
        Difference::Failed { node, message, missed } => {
            let asking = missed.and_then(|(task, missed)| {
                let node = frontier.tasks.get(task as usize)?.node.clone();
                Some((node, missed.recorded?, missed.asked))
            });
            let (node, about, expected, actual) = match asking {
                Some((node, recorded, asked)) => (node, About::Request, recorded, asked),
                None => {
                    let expected = written_by(&stored, frontier, &node);
                    (node, About::Update, expected, Value::Null)
                }
            };
            return Ok(Divergence { step, node, reason: message, about, expected, actual });
        }
    };
    let again: Vec<StoredWrite> = serde_json::from_slice(&delta).unwrap_or_default();
    let first = stored.iter().zip(&again).find(|(then, now)| then != now);
    Ok(match first {
        Some((then, now)) => Divergence {
            step,
            node: then.node.clone(),
            reason: "it wrote something else".to_owned(),
            about: About::Update,
            expected: then.update.clone(),
            actual: now.update.clone(),
        },
        None => Divergence {
            step,
            node: stored.last().map(|last| last.node.clone()).unwrap_or_default(),
            reason: "the step leads elsewhere".to_owned(),
            about: About::Next,
            expected: value(&row.frontier),
            actual: value(&next),
        },
    })
}

fn written_by(stored: &[StoredWrite], frontier: &Frontier, node: &str) -> Value {
    let task = frontier.tasks.iter().position(|task| task.node == node);
    let written = task.and_then(|task| stored.get(task));
    written.map_or(Value::Null, |written| written.update.clone())
}
