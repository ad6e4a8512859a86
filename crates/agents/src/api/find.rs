//! Finds operations that fit the task, and describes the best.

use serde_json::{Value, json};

use super::{Call, CallUpdate};
use crate::pipeline::{AgentError, ErrorKind, Stage, StageResult, Step};

/// Candidates that the planner is shown.
const CANDIDATES: usize = 12;
/// How many of them are described in full.
const DESCRIBED: usize = 4;
/// Characters of one description.
const SHOWN: usize = 4_000;

pub async fn find(stage: Stage<Call>) -> StageResult<Call> {
    let reply = stage.call("find", json!({ "query": stage.query(), "limit": CANDIDATES })).await?;
    if reply.is_error {
        return Err(AgentError::new(ErrorKind::Tool, reply.text).into());
    }
    let found = reply.structured.unwrap_or_default();
    let mut candidates =
        found.get("operations").and_then(Value::as_array).cloned().unwrap_or_default();
    if candidates.is_empty() {
        return Step::decline("the API has no operation that fits the task");
    }
    for (number, candidate) in candidates.iter_mut().enumerate() {
        let mut description = String::new();
        if number < DESCRIBED && stage.has_tool("describe") {
            let name = candidate.get("operation").cloned().unwrap_or_default();
            let described = stage.call("describe", json!({ "operation": name })).await?;
            description =
                described.text.chars().take(SHOWN).filter(|_| !described.is_error).collect();
        }
        *candidate = shown(candidate, description);
    }
    let documentation = found.get("documentation").cloned().unwrap_or_else(|| json!([]));
    Ok(Step::next(
        CallUpdate::new().candidates(Value::Array(candidates)).documentation(documentation),
    ))
}

/// Returns what the planner is shown of a candidate, every key of it.
fn shown(candidate: &Value, description: String) -> Value {
    let text = |key: &str| candidate.get(key).and_then(Value::as_str).unwrap_or_default();
    json!({
        "method": text("method"),
        "path": text("path"),
        "summary": text("summary"),
        "required": candidate.get("required").cloned().unwrap_or_else(|| json!([])),
        "yields": text("yields"),
        "description": description,
    })
}
