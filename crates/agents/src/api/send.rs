//! Finds possible operations, sends the planned request and explains the result; a request that cannot be rendered or
//! was rejected for its values goes back to the planner.

use serde_json::{Map, Value, json};

use super::{Call, CallUpdate, REPAIRS};
use crate::pipeline::{
    AgentError, Ask, ErrorKind, Finding, Role, Source, Stage, StageResult, Step, Table,
};

/// Characters of a refusal that the planner is shown.
const ERROR: usize = 1_000;

pub async fn send(stage: Stage<Call>) -> StageResult<Call> {
    let attempts = stage.state().attempts + 1;
    let mut arguments = stage.state().arguments.clone();
    let role = if reads(&arguments) && stage.has_tool("read") { "read" } else { "call" };
    // Of the context, a tool that names it gets what models may read as an argument.
    let takes_context =
        stage.tool(role).is_some_and(|tool| !tool.input_schema["properties"]["context"].is_null());
    let mut beside = stage.secrets();
    if takes_context {
        arguments["context"] = json!(stage.context());
    } else {
        beside.extend(stage.context());
    }
    let reply = stage.call_beside(role, arguments.clone(), &beside).await?;
    let mut update = CallUpdate::new().attempts(attempts);
    if let Some(edited) = reply.edited {
        arguments = Value::Object(edited);
        update = update.arguments(arguments.clone());
    }
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
        return Err(AgentError::of_message(reply.text).into());
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
    let details = json!({ "status": status, "body": body, "request": arguments });
    Err(AgentError::new(ErrorKind::Http, problem).with_details(details).into())
}

/// Returns whether the method of a planned request is read-only.
fn reads(arguments: &Value) -> bool {
    let operation = arguments["operation"].as_str().unwrap_or_default();
    let method = operation.split_whitespace().next().unwrap_or_default();
    matches!(method, "GET" | "HEAD" | "OPTIONS")
}

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
    let mut candidates = found["operations"].as_array().cloned().unwrap_or_default();
    if candidates.is_empty() {
        return Step::decline("the API has no operation that fits the task");
    }
    for (number, candidate) in candidates.iter_mut().enumerate() {
        let mut description = String::new();
        // The last call is that of the request.
        let may_describe = number < DESCRIBED && stage.budget().tool_calls > 1;
        if may_describe && stage.has_tool("describe") {
            let wanted = json!({ "operation": candidate["operation"] });
            let described = stage.call("describe", wanted).await?;
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

fn shown(candidate: &Value, description: String) -> Value {
    let text = |key: &str| candidate[key].as_str().unwrap_or_default();
    json!({
        "method": text("method"),
        "path": text("path"),
        "summary": text("summary"),
        "required": candidate.get("required").cloned().unwrap_or_else(|| json!([])),
        "yields": text("yields"),
        "description": description,
    })
}

/// Characters of an answer that the model is shown.
const LONGEST_SHOWN: usize = 8_000;

pub async fn summary(stage: Stage<Call>) -> StageResult<Call> {
    let answer = stage.state().answer.clone();
    let body = answer.get("body").cloned().unwrap_or_default();
    let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    let shown: String = text.chars().take(LONGEST_SHOWN).collect();
    let operation = stage.state().arguments["operation"].as_str().unwrap_or_default().to_owned();
    let prompt = json!({
        "task": stage.task(),
        "operation": operation,
        "status": answer.get("status"),
        "is_cut": shown.len() < text.len() || answer.get("truncated").and_then(Value::as_bool).unwrap_or_default(),
        "body": &shown,
    });
    let ask = Ask::new(Role::Summarizer, "summary", "").prompt("api_summary", prompt);
    // The data of the API is kept when the summary fails.
    let words = stage.ask_text_or(ask, shown).await?;
    let source = Source {
        source: format!("{}.call_operation", stage.server().name),
        reference: Some(operation),
        ..Source::default()
    };
    Ok(Step::done(Finding { table: table(&body), ..Finding::text(words).source(source) }))
}

/// Reads a list of objects as a table: the body itself, or its one list.
fn table(body: &Value) -> Option<Table> {
    let list = match body {
        Value::Array(list) => list,
        Value::Object(entries) => {
            let mut lists = entries.values().filter_map(Value::as_array);
            let list = lists.next()?;
            if lists.next().is_some() {
                return None;
            }
            list
        }
        _ => return None,
    };
    let rows: Vec<&Map<String, Value>> =
        list.iter().map(Value::as_object).collect::<Option<_>>()?;
    Some(Table::of_objects(&rows)).filter(|table| !table.columns.is_empty())
}
