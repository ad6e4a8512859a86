//! Sends the planned request; one that cannot be rendered or was refused for its values goes back to the planner.

use serde_json::{Map, Value, json};

use super::{Call, CallUpdate, REPAIRS};
use crate::pipeline::{AgentError, ErrorKind, Stage, StageResult, Step};

/// Characters of a refusal that the planner is shown.
const ERROR: usize = 1_000;

pub async fn send(stage: Stage<Call>) -> StageResult<Call> {
    let attempts = stage.state().attempts + 1;
    let mut arguments = stage.state().arguments.clone();
    if let Some(arguments) = arguments.as_object_mut() {
        let context: Map<String, Value> =
            stage.context().iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        arguments.insert("context".to_owned(), Value::Object(context));
    }
    let role = if reads(&arguments) && stage.has_tool("read") { "read" } else { "call" };
    let reply = stage.call(role, arguments).await?;
    let update = CallUpdate::new().attempts(attempts);
    let answer = reply.structured.filter(|answer| answer.get("status").is_some());
    let Some(answer) = answer else {
        if !reply.is_error {
            return Ok(Step::next(update.answer(json!({ "status": 200, "body": reply.text }))));
        }
        let is_repairable =
            reply.text.starts_with("RequestError") || reply.text.starts_with("PathResolutionError");
        if is_repairable && attempts <= REPAIRS {
            return Ok(Step::goto("plan", update.problem(Some(reply.text))));
        }
        return Err(AgentError::new(ErrorKind::of_message(&reply.text), reply.text).into());
    };
    let status = answer.get("status").and_then(Value::as_u64).unwrap_or_default();
    if status < 400 {
        return Ok(Step::next(update.answer(answer)));
    }
    let body = answer.get("body").map(ToString::to_string).unwrap_or_default();
    let body: String = body.chars().take(ERROR).collect();
    let problem = format!("the API answered with status {status}: {body}");
    if matches!(status, 400 | 404 | 405 | 406 | 415 | 422) && attempts <= REPAIRS {
        stage.progress(format!(
            "the API refused the request with status {status}; it is planned again"
        ));
        return Ok(Step::goto("plan", update.problem(Some(problem))));
    }
    let details = json!({ "status": status, "body": body, "request": stage.state().arguments });
    Err(AgentError::new(ErrorKind::Http, problem).with_details(details).into())
}

/// Tells whether the method of a planned request only reads.
fn reads(arguments: &Value) -> bool {
    let operation = arguments["operation"].as_str().unwrap_or_default();
    let method = operation.split_whitespace().next().unwrap_or_default();
    matches!(method, "GET" | "HEAD" | "OPTIONS")
}
