//! The shapes of responses and of what they cost.

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::format::{Format, Reply};
use crate::conversation::{Ending, Outcome};
use perihelion_llm::Usage;
use perihelion_service::kept::{Run, RunStatus};

/// Returns the id of a run's message.
pub(super) fn message_id(run: &Run) -> String {
    format!("msg_{}", run.id.simple())
}

/// Returns the form in which a run's request wanted its answer.
fn format_of(run: &Run) -> Format {
    Format::deserialize(&run.metadata["openai"]["format"]).unwrap_or_default()
}

/// Returns the schema that the answer of a run must match, if any.
pub(super) fn schema_of(run: &Run) -> Option<Value> {
    format_of(run).schema("text.format").ok().flatten()
}

/// Shows a response; without an outcome it is in progress.
pub(super) fn response(run: &Run, outcome: Option<&Outcome>) -> Value {
    let shown = &run.metadata["openai"];
    let ended = outcome.filter(|outcome| outcome.ending != Ending::Continues);
    let status = match ended.map(|outcome| &outcome.ending) {
        None | Some(Ending::Continues) if run.status == RunStatus::Pending => "queued",
        None | Some(Ending::Continues) => "in_progress",
        Some(Ending::Answered) if outcome.is_some_and(|outcome| outcome.is_cut) => "incomplete",
        Some(Ending::Answered | Ending::Asks) => "completed",
        Some(Ending::Failed(_)) => "failed",
        Some(Ending::Cancelled) => "cancelled",
    };
    let error = ended.and_then(|outcome| match &outcome.ending {
        Ending::Failed(why) => Some(json!({ "code": "server_error", "message": why })),
        _ => None,
    });
    let answered =
        ended.filter(|outcome| matches!(outcome.ending, Ending::Answered | Ending::Asks));
    let schema = schema_of(run);
    let output = answered.map(|outcome| message(run, Some(&Reply::of(outcome, schema.as_ref()))));
    let completed_at = run.updated_at.timestamp().max(run.created_at.timestamp());
    let mut metadata = shown["metadata"].as_object().cloned().unwrap_or_default();
    metadata.insert("thread_id".into(), json!(run.thread));
    if ended.is_some_and(|outcome| outcome.ending == Ending::Asks) {
        metadata.insert("status".into(), json!("interrupted"));
    }
    let is_cut = status == "incomplete";
    json!({
        "id": format!("resp_{}", run.id.simple()),
        "object": "response",
        "created_at": run.created_at.timestamp(),
        "completed_at": (status == "completed").then_some(completed_at),
        "status": status,
        "background": shown["background"] == true,
        "error": error,
        "incomplete_details": is_cut.then(|| json!({ "reason": "max_output_tokens" })),
        "instructions": shown["instructions"],
        "max_output_tokens": null,
        "max_tool_calls": null,
        "model": shown["model"].as_str().unwrap_or(perihelion_star::GRAPH),
        "output": Vec::from_iter(output),
        "parallel_tool_calls": true,
        "previous_response_id": shown["previous_response_id"],
        "prompt_cache_key": null,
        "reasoning": { "effort": null, "summary": null },
        "safety_identifier": null,
        "service_tier": "default",
        "store": shown["store"] != false,
        "temperature": 1.0,
        "text": { "format": format_of(run), "verbosity": "medium" },
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "truncation": "disabled",
        "usage": ended.map(|outcome| usage(outcome.usage)),
        "user": null,
        "metadata": metadata,
    })
}

/// Shows the message of a response; without a text it is in progress.
pub(super) fn message(run: &Run, reply: Option<&Reply<'_>>) -> Value {
    json!({
        "id": message_id(run),
        "type": "message",
        "role": "assistant",
        "status": if reply.is_some() { "completed" } else { "in_progress" },
        "content": Vec::from_iter(reply.map(part)),
    })
}

/// Shows a part of a message.
pub(super) fn part(reply: &Reply<'_>) -> Value {
    match reply {
        Reply::Answer(text) => {
            json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
        }
        Reply::Refusal(text) => json!({ "type": "refusal", "refusal": text }),
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": { "cached_tokens": usage.cached_tokens },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": usage.input_tokens + usage.output_tokens,
    })
}

/// Shows what a chat completion has cost.
pub(super) fn chat_usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    })
}
