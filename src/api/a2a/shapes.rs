//! The shapes of tasks, messages and their events.

use serde_json::{Value, json};

use super::tasks::{State, Task};

/// Shows a task.
pub(super) fn task(task: &Task) -> Value {
    let mut shown = json!({
        "id": task.id,
        "contextId": task.context,
        "status": status(task),
        "history": task.history.iter().map(|(role, id, text)| message(task, role, id, text)).collect::<Vec<_>>(),
    });
    if !task.more.is_empty() {
        shown["metadata"] = json!(task.more);
    }
    if let (State::Completed, Some(text)) = (task.state, &task.text) {
        shown["artifacts"] = json!([artifact(task, text)]);
    }
    shown
}

/// Shows how a task stands; a question stands in its message.
pub(super) fn status(task: &Task) -> Value {
    let mut status = json!({ "state": task.state.word(), "timestamp": task.at.to_rfc3339() });
    if let (State::InputRequired | State::Failed, Some(text)) = (task.state, &task.text) {
        status["message"] = message(task, "ROLE_AGENT", &format!("{}-status", task.run), text);
    }
    status
}

/// Shows the answer of a task.
pub(super) fn artifact(task: &Task, text: &str) -> Value {
    json!({ "artifactId": format!("{}-answer", task.id), "name": "answer", "parts": [{ "text": text }] })
}

fn message(task: &Task, role: &str, id: &str, text: &str) -> Value {
    json!({
        "messageId": id, "role": role, "parts": [{ "text": text }], "taskId": task.id, "contextId": task.context,
    })
}

/// Shows a change of a task's state.
pub(super) fn status_update(task: &Task) -> Value {
    json!({ "statusUpdate": { "taskId": task.id, "contextId": task.context, "status": status(task) } })
}

/// Shows a piece of a task's answer.
pub(super) fn piece(task: &Task, text: &str, is_first: bool, is_last: bool) -> Value {
    json!({ "artifactUpdate": {
        "taskId": task.id, "contextId": task.context, "artifact": artifact(task, text), "append": !is_first,
        "lastChunk": is_last,
    } })
}
