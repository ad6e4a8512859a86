//! The shapes of tasks, messages and their events.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::state::State;
use super::tasks::{Task, TaskMessage};

pub(super) fn task(task: &Task) -> Value {
    short_task(task, None)
}

/// Shows a task with as many of its newest messages as are wanted; no number: with all.
pub(super) fn short_task(task: &Task, messages: Option<u32>) -> Value {
    let mut shown = json!({ "id": task.id, "contextId": task.context, "status": status(task) });
    let most = messages.map_or(usize::MAX, |most| most as usize);
    let left_out = task.history.len().saturating_sub(most);
    if most > 0 {
        let history = task.history.iter().skip(left_out).map(|words| message(task, words));
        shown["history"] = history.collect();
    }
    if !task.more.is_empty() {
        shown["metadata"] = json!(task.more);
    }
    if let (State::Completed, Some(text)) = (task.state, &task.text) {
        shown["artifacts"] = json!([artifact(task, text)]);
    }
    shown
}

/// Shows the status of a task; its message contains the question.
pub(super) fn status(task: &Task) -> Value {
    let mut status = json!({ "state": task.state.word(), "timestamp": time(task.at) });
    if let (State::InputRequired | State::Failed, Some(text)) = (task.state, &task.text) {
        status["message"] = message(
            task,
            &TaskMessage {
                role: "ROLE_AGENT",
                id: format!("{}-status", task.run),
                texts: vec![text.clone()],
            },
        );
    }
    status
}

pub(super) fn artifact(task: &Task, text: &str) -> Value {
    json!({ "artifactId": format!("{}-answer", task.id), "name": "answer", "parts": [{ "text": text }] })
}

fn message(task: &Task, words: &TaskMessage) -> Value {
    let parts: Vec<Value> = words.texts.iter().map(|text| json!({ "text": text })).collect();
    json!({
        "messageId": words.id, "role": words.role, "parts": parts, "taskId": task.id, "contextId": task.context,
    })
}

/// Shows a time as it is written everywhere here: in UTC, with milliseconds.
fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

pub(super) fn status_update(task: &Task) -> Value {
    json!({ "statusUpdate": { "taskId": task.id, "contextId": task.context, "status": status(task) } })
}

/// Shows a piece of the artifact; the first one replaces what was sent before.
pub(super) fn piece(task: &Task, text: &str, is_first: bool) -> Value {
    json!({ "artifactUpdate": {
        "taskId": task.id, "contextId": task.context, "artifact": artifact(task, text), "append": !is_first,
        "lastChunk": false,
    } })
}
