//! The shapes of responses and chat completions.

use serde_json::{Value, json};

use crate::api::conversation::Outcome;
use crate::llm::Usage;
use crate::service::kept::Run;

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
    let status = match outcome {
        None => "in_progress",
        Some(outcome) if outcome.error.is_some() => "failed",
        Some(_) => "completed",
    };
    let error = outcome.and_then(|outcome| outcome.error.as_ref());
    let output = match outcome {
        Some(outcome) if outcome.error.is_none() => {
            json!([message(run, &outcome.text, "completed")])
        }
        _ => json!([]),
    };
    let mut metadata = shown["metadata"].as_object().cloned().unwrap_or_default();
    metadata.insert("thread_id".into(), json!(run.thread));
    if outcome.is_some_and(|outcome| outcome.asks) {
        metadata.insert("status".into(), json!("interrupted"));
    }
    json!({
        "id": response_id(run),
        "object": "response",
        "created_at": run.created_at.timestamp(),
        "completed_at": outcome.map(|_| run.updated_at.timestamp().max(run.created_at.timestamp())),
        "status": status,
        "background": false,
        "error": error.map(|text| json!({ "code": "server_error", "message": text })),
        "incomplete_details": null,
        "instructions": shown["instructions"],
        "max_output_tokens": null,
        "max_tool_calls": null,
        "model": shown["model"].as_str().unwrap_or(crate::swarm::GRAPH),
        "output": output,
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
        "usage": outcome.map(|outcome| usage(outcome.usage)),
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
