//! Open questions in the clients' format.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use perihelion_engine::ids::ThreadId;
use perihelion_mcp as mcp;
use perihelion_runtime::InterruptView;
use perihelion_star::question::Question;

/// Returns the id of a task: the same whenever it is shown.
pub(crate) fn task_id(thread: ThreadId, step: u64, task: u32) -> String {
    Uuid::new_v5(&thread.0, format!("task/{step}/{task}").as_bytes()).to_string()
}

pub(super) fn shown(question: &InterruptView) -> Value {
    json!({ "value": value(question), "id": question.id })
}

pub(crate) fn shown_all<'a>(questions: impl IntoIterator<Item = &'a InterruptView>) -> Value {
    questions
        .into_iter()
        .map(|one| {
            let schema = one.payload.get("response_schema");
            json!({ "value": value(one), "id": one.id, "response_schema": schema })
        })
        .collect()
}

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

/// Makes the value in the form that approval pages can show, with all facts about the question.
pub(crate) fn value(question: &InterruptView) -> Value {
    // The question of a program's own graph is shown unchanged.
    if !question.has_known_kind() {
        return question.payload.clone();
    }
    let mut value = match &question.payload {
        Value::Object(fields) => fields.clone(),
        other => Map::from_iter([("question".to_owned(), other.clone())]),
    };
    value.insert("kind".into(), json!(question.kind));
    value.insert("agent".into(), json!(question.agent));
    if let Some(asked) = Review::of(question.question()) {
        let Review { name, arguments, description, allowed } = asked;
        let request =
            json!({ "name": name, "args": arguments, "description": mcp::shown(&description) });
        let review = json!({ "action_name": name, "allowed_decisions": allowed });
        value.insert("action_requests".into(), json!([request]));
        value.insert("review_configs".into(), json!([review]));
    }
    Value::Object(value)
}

/// A call that a page for approvals shows, with the decisions that it offers.
struct Review {
    name: String,
    /// An object.
    arguments: Value,
    description: String,
    allowed: &'static [&'static str],
}

impl Review {
    /// Makes it from a question about a call; `None` for another or unreadable question, which is shown unchanged.
    fn of(question: Question) -> Option<Self> {
        match question {
            Question::Approval(call) => {
                let mut description = vec![call.description.clone()];
                description.extend(call.reasons.clone());
                description.retain(|line| !line.is_empty());
                Some(Self {
                    name: call.name(),
                    arguments: Value::Object(call.arguments),
                    description: description.join("\n\n"),
                    allowed: &["approve", "edit", "reject"],
                })
            }
            Question::OutcomeUnknown(call) => Some(Self {
                description: format!(
                    "It is unknown whether this call took effect ({}). Approve to send it again, or reject to skip it.",
                    call.reason
                ),
                name: call.tool,
                arguments: match call.request {
                    request @ Value::Object(_) => request,
                    other => json!({ "value": other }),
                },
                allowed: &["approve", "reject"],
            }),
            Question::Elicitation(_) | Question::Clarification(_) | Question::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_question_is_shown_as_it_is_and_offers_no_decision() {
        let payload = json!({ "server": 7, "arguments": "?" });
        let question = InterruptView {
            id: "id".into(),
            kind: "approval".into(),
            agent: "mcp_agent_x".into(),
            payload,
        };
        let wanted =
            json!({ "server": 7, "arguments": "?", "kind": "approval", "agent": "mcp_agent_x" });
        assert_eq!(value(&question), wanted);
    }
}
