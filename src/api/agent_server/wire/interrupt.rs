//! Open questions in the clients' format.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::ids::ThreadId;
use crate::runtime::InterruptView;

/// Returns the id of a task: the same whenever it is shown.
pub(crate) fn task_id(thread: ThreadId, step: u64, task: u32) -> String {
    Uuid::new_v5(&thread.0, format!("task/{step}/{task}").as_bytes()).to_string()
}

/// Shows a question.
pub(super) fn shown(question: &InterruptView) -> Value {
    json!({ "value": value(question), "id": question.id })
}

/// Shows questions as the stream has them.
pub(crate) fn shown_all<'a>(questions: impl IntoIterator<Item = &'a InterruptView>) -> Value {
    questions
        .into_iter()
        .map(|one| json!({ "value": value(one), "id": one.id, "response_schema": null }))
        .collect()
}

/// Shows the questions of a thread by the tasks that ask them.
pub(crate) fn by_task(
    thread: ThreadId,
    step: u64,
    open: &[InterruptView],
    asking: &[u32],
) -> Map<String, Value> {
    let mut tasks = Map::new();
    for (question, task) in open.iter().zip(asking) {
        let id = task_id(thread, step, *task);
        if let Value::Array(list) = tasks.entry(id).or_insert_with(|| json!([])) {
            list.push(shown(question));
        }
    }
    tasks
}

/// Makes the value that pages for approvals know how to show, with everything that we say of the question.
pub(crate) fn value(question: &InterruptView) -> Value {
    let payload = &question.payload;
    let mut value = match payload {
        Value::Object(fields) => fields.clone(),
        other => Map::from_iter([("question".to_owned(), other.clone())]),
    };
    value.insert("kind".into(), json!(question.kind));
    value.insert("agent".into(), json!(question.agent));
    let text = |key: &str| payload.get(key).and_then(Value::as_str).unwrap_or_default();
    let request = match question.kind.as_str() {
        "approval" => {
            let name = format!("{}.{}", text("server"), text("tool"));
            let mut description = vec![text("description").to_owned()];
            let reasons = payload["reasons"].as_array().into_iter().flatten();
            description.extend(reasons.filter_map(Value::as_str).map(str::to_owned));
            description.retain(|line| !line.is_empty());
            Some((name, payload["arguments"].clone(), description.join("\n\n")))
        }
        "outcome_unknown" => {
            let what = format!(
                "Nobody knows whether this call took effect ({}). Approve to send it again, reject to leave it.",
                text("reason")
            );
            Some((text("tool").to_owned(), payload["request"].clone(), what))
        }
        _ => None,
    };
    if let Some((name, args, description)) = request {
        let args = if args.is_object() { args } else { json!({ "value": args }) };
        let request = json!({ "name": name, "args": args, "description": description });
        let allowed: &[&str] = match question.kind.as_str() {
            "approval" => &["approve", "edit", "reject"],
            _ => &["approve", "reject"],
        };
        let review = json!({ "action_name": name, "allowed_decisions": allowed });
        value.insert("action_requests".into(), json!([request]));
        value.insert("review_configs".into(), json!([review]));
    }
    Value::Object(value)
}
