//! The shapes of responses and of their usage, complete or as they are written: a stream of events with the same
//! numbers for all readers.

use axum::body::Bytes;
use axum::response::Response;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::format::{Format, Reply};
use crate::conversation::{AnswerPart, Conversation, Ending, Outcome};
use crate::event_stream;
use perihelion_llm::Usage;
use perihelion_service::Service;
use perihelion_service::kept::{Run, RunStatus};

fn message_id(run: &Run) -> String {
    format!("msg_{}", run.id.simple())
}

fn format_of(run: &Run) -> Format {
    Format::deserialize(&run.metadata["openai"]["format"]).unwrap_or_default()
}

/// Returns the schema that the answer of a run must match, if any.
fn schema_of(run: &Run) -> Option<Value> {
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
    let ended_at = ended.and_then(|outcome| outcome.ended_at).unwrap_or(run.updated_at);
    let completed_at = ended_at.max(run.created_at).timestamp();
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
fn message(run: &Run, reply: Option<&Reply<'_>>) -> Value {
    json!({
        "id": message_id(run),
        "type": "message",
        "role": "assistant",
        "status": if reply.is_some() { "completed" } else { "in_progress" },
        "content": Vec::from_iter(reply.map(part)),
    })
}

fn part(reply: &Reply<'_>) -> Value {
    let text = reply.text;
    if reply.is_refusal {
        json!({ "type": "refusal", "refusal": text })
    } else {
        json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": { "cached_tokens": usage.cached_tokens },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": usage.total(),
    })
}

pub(super) fn chat_usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "prompt_tokens_details": { "cached_tokens": usage.cached_tokens },
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total(),
    })
}

/// Streams the response of a run from its beginning, or after the event of a number.
pub(super) fn streamed(service: &Service, run: Run, after: Option<u64>) -> Response {
    let conversation = Conversation::follow(service, run.clone());
    let mut streamed =
        Streamed { schema: schema_of(&run), run, after, number: 0, ready: Vec::new() };
    streamed.open();
    let first = std::mem::take(&mut streamed.ready);
    event_stream::of_conversation(conversation, first, move |part| streamed.events(part))
}

struct Streamed {
    run: Run,
    /// The schema that the answer must match.
    schema: Option<Value>,
    /// The newest event that the client has.
    after: Option<u64>,
    number: u64,
    ready: Vec<Bytes>,
}

impl Streamed {
    fn put(&mut self, kind: &str, mut event: Value) {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(self.number);
        if self.after.is_none_or(|after| self.number > after) {
            self.ready.push(event_stream::event(kind, &event.to_string(), None));
        }
        self.number += 1;
    }

    /// Makes an event of the message's only part, with an additional field.
    fn put_part(&mut self, kind: &str, name: &str, value: Value) {
        let item = message_id(&self.run);
        let mut event = json!({ "item_id": item, "output_index": 0, "content_index": 0 });
        event[name] = value;
        if kind.starts_with("response.output_text") {
            event["logprobs"] = json!([]);
        }
        self.put(kind, event);
    }

    fn open(&mut self) {
        let response = response(&self.run, None);
        self.put("response.created", json!({ "response": response }));
        self.put("response.in_progress", json!({ "response": response }));
        let item = message(&self.run, None);
        self.put("response.output_item.added", json!({ "output_index": 0, "item": item }));
        // Only the whole of an answer in JSON shows whether it is one.
        if self.schema.is_none() {
            self.put_part(
                "response.content_part.added",
                "part",
                part(&Reply { text: "", is_refusal: false }),
            );
        }
    }

    fn events(&mut self, part: AnswerPart) -> Vec<Bytes> {
        match part {
            AnswerPart::Piece(piece) if self.schema.is_none() => {
                self.put_part("response.output_text.delta", "delta", json!(piece));
            }
            AnswerPart::Piece(_) | AnswerPart::Started(_) => {}
            AnswerPart::End(outcome) => self.close(&outcome),
        }
        std::mem::take(&mut self.ready)
    }

    fn close(&mut self, outcome: &Outcome) {
        let response = json!({ "response": response(&self.run, Some(outcome)) });
        match outcome.ending {
            Ending::Answered | Ending::Asks => {}
            Ending::Failed(_) => return self.put("response.failed", response),
            Ending::Cancelled => return self.put("response.incomplete", response),
            // The stream breaks off without an event: its number is that of the next one, which another process sends.
            Ending::Continues => return,
        }
        let schema = self.schema.take();
        let reply = Reply::of(outcome, schema.as_ref());
        let (kind, name) =
            if reply.is_refusal { ("refusal", "refusal") } else { ("output_text", "text") };
        let text = json!(reply.text);
        if schema.is_some() {
            let empty = part(&Reply { text: "", ..reply });
            self.put_part("response.content_part.added", "part", empty);
            self.put_part(&format!("response.{kind}.delta"), "delta", text.clone());
        }
        self.put_part(&format!("response.{kind}.done"), name, text);
        self.put_part("response.content_part.done", "part", part(&reply));
        let item = message(&self.run, Some(&reply));
        self.put("response.output_item.done", json!({ "output_index": 0, "item": item }));
        let end = if outcome.is_cut { "response.incomplete" } else { "response.completed" };
        self.put(end, response);
    }
}
