//! Makes the model plan one request; a plan that is declined only for missing documentation is tried anyway.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Call, CallUpdate};
use crate::pipeline::{AgentError, Ask, ErrorKind, Role, Stage, StageResult, Step};

/// Words of a planner that declines because it was shown too little, not because there is no way.
const ONLY_UNDOCUMENTED: [&str; 8] = [
    "documentation",
    "not document",
    "undocumented",
    "not specify",
    "not specified",
    "unspecified",
    "cannot invent",
    "not described",
];

/// What the model answers.
#[derive(Debug, Deserialize, JsonSchema)]
struct Plan {
    /// Whether a request can answer the task.
    make_request: bool,
    #[schemars(length(max = 10))]
    method: String,
    /// Path of the operation as it is listed, with its placeholders.
    #[schemars(length(max = 300))]
    path: String,
    #[schemars(length(max = 8))]
    path_params: Vec<Named>,
    #[schemars(length(max = 16))]
    query_params: Vec<Named>,
    #[schemars(length(max = 8))]
    headers: Vec<Named>,
    /// The body as JSON text, or null.
    json_body: Option<String>,
    /// Why this request.
    #[schemars(length(max = 200))]
    reason: String,
    /// Why none can be made, or null.
    #[schemars(length(max = 200))]
    failure_reason: Option<String>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Named {
    #[schemars(length(max = 80))]
    name: String,
    value: String,
}

pub async fn plan(stage: Stage<Call>) -> StageResult<Call> {
    let state = stage.state();
    let prompt = stage.variables(json!({
        "context": known(&stage),
        "candidates": state.candidates,
        "documentation": state.documentation,
        "problem": state.problem,
    }));
    let ask = Ask::new(Role::Agent, "plan", "api_request_plan").prompt("api_plan", prompt);
    let plan: Plan = stage.ask(ask).await?;
    if !plan.make_request && !is_forced(&plan) {
        let reason = plan.failure_reason.unwrap_or(plan.reason);
        return Err(AgentError::new(ErrorKind::PlanningDeclined, reason).into());
    }
    let body = plan.json_body.as_deref().map(str::trim);
    let body = body.filter(|text| !text.is_empty());
    // What is no JSON may be a text that the operation takes as it is.
    let body = body
        .map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())));
    let mut arguments = json!({
        "operation": format!("{} {}", plan.method.trim().to_ascii_uppercase(), plan.path.trim()),
        "path_params": by_name(plan.path_params),
        "query_params": by_name(plan.query_params),
        "headers": by_name(plan.headers),
    });
    if let Some(body) = body {
        arguments["body"] = body;
    }
    Ok(Step::next(CallUpdate::new().arguments(arguments)))
}

/// Returns whether a declined plan is tried: a safe guess answers more often than a refusal.
fn is_forced(plan: &Plan) -> bool {
    let method = plan.method.trim().to_ascii_uppercase();
    let words = format!("{} {}", plan.reason, plan.failure_reason.as_deref().unwrap_or_default())
        .to_lowercase();
    matches!(method.as_str(), "GET" | "POST")
        && plan.path.trim().starts_with('/')
        && ONLY_UNDOCUMENTED.iter().any(|part| words.contains(part))
}

fn by_name(list: Vec<Named>) -> Map<String, Value> {
    list.into_iter().map(|named| (named.name, Value::String(named.value))).collect()
}

/// Returns the part of the context for a planner: without the targets of requests.
fn known(stage: &Stage<Call>) -> BTreeMap<String, String> {
    let mut known = stage.context();
    known.retain(|key, _| !["url", "key"].iter().any(|part| key.to_lowercase().contains(part)));
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(method: &str, path: &str, failure: &str) -> Plan {
        let text = json!({"make_request": false, "method": method, "path": path, "path_params": [], "query_params": [], "headers": [],
                          "json_body": null, "reason": "", "failure_reason": failure});
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn only_a_lack_of_documentation_is_overruled_and_only_for_reading_and_posting() {
        assert!(is_forced(&plan(
            "get",
            "/orders",
            "The documentation does not say what it returns"
        )));
        assert!(is_forced(&plan("POST", "/orders", "I cannot invent the fields")));
        assert!(!is_forced(&plan("DELETE", "/orders", "The documentation is missing")));
        assert!(!is_forced(&plan("GET", "", "The documentation is missing")));
        assert!(!is_forced(&plan("GET", "/orders", "The user may not see orders")));
    }
}
