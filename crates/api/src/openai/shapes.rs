//! The shapes of responses and chat completions.

use serde_json::{Value, json};

use crate::conversation::{Ending, Outcome};
use perihelion_llm::Usage;
use perihelion_service::kept::Run;

/// Returns the id of a run's response.
pub(super) fn response_id(run: &Run) -> String {
    format!("resp_{}", run.id.simple())
}

/// Returns the id of a run's message.
pub(super) fn message_id(run: &Run) -> String {
    format!("msg_{}", run.id.simple())
}

/// Shows a response; without an outcome it is under way.
pub(super) fn response(run: &Run, outcome: Option<&Outcome>) -> Value {
    let shown = &run.metadata["openai"];
    let ended = outcome.filter(|outcome| outcome.ending != Ending::Continues);
    let status = ended.map_or("in_progress", |outcome| match outcome.ending {
        Ending::Answered | Ending::Asks => "completed",
        Ending::Failed(_) => "failed",
        Ending::Cancelled => "cancelled",
        Ending::Continues => "in_progress",
    });
    let error = ended.and_then(|outcome| match &outcome.ending {
        Ending::Failed(why) => Some(json!({ "code": "server_error", "message": why })),
        _ => None,
    });
    let completed = ended.filter(|_| status == "completed");
    let output = completed.map(|outcome| message(run, &outcome.text, "completed"));
    let completed_at = run.updated_at.timestamp().max(run.created_at.timestamp());
    let mut metadata = shown["metadata"].as_object().cloned().unwrap_or_default();
    metadata.insert("thread_id".into(), json!(run.thread));
    if ended.is_some_and(|outcome| outcome.ending == Ending::Asks) {
        metadata.insert("status".into(), json!("interrupted"));
    }
    json!({
        "id": response_id(run),
        "object": "response",
        "created_at": run.created_at.timestamp(),
        "completed_at": completed.map(|_| completed_at),
        "status": status,
        "background": false,
        "error": error,
        "incomplete_details": null,
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
        "store": true,
        "temperature": 1.0,
        "text": { "format": { "type": "text" }, "verbosity": "medium" },
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

/// Shows a message of a response.
pub(super) fn message(run: &Run, text: &str, status: &str) -> Value {
    json!({
        "id": message_id(run),
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [part(text)],
    })
}

/// Shows a text of a message.
pub(super) fn part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
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
