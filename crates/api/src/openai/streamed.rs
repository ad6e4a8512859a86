//! A response as it is written: a stream of events, numbered the same for all who read it.

use axum::body::Bytes;
use axum::response::Response;
use perihelion_http::sse;
use serde_json::{Value, json};

use super::format::Reply;
use super::shapes;
use crate::conversation::{AnswerPart, Conversation, Ending, Outcome};
use crate::event_stream;
use perihelion_service::Service;
use perihelion_service::kept::Run;

/// Streams the response of a run from its beginning, or after the event of a number.
pub(super) fn response(service: &Service, run: Run, after: Option<u64>) -> Response {
    let conversation = Conversation::follow(service, run.clone());
    let mut streamed =
        Streamed { schema: shapes::schema_of(&run), run, after, number: 0, ready: Vec::new() };
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
            self.ready.push(sse::event(kind, &event.to_string(), None));
        }
        self.number += 1;
    }

    /// Puts an event of the message's only part, with a field of its own.
    fn put_part(&mut self, kind: &str, name: &str, value: Value) {
        let item = shapes::message_id(&self.run);
        let mut event = json!({ "item_id": item, "output_index": 0, "content_index": 0 });
        event[name] = value;
        if kind.starts_with("response.output_text") {
            event["logprobs"] = json!([]);
        }
        self.put(kind, event);
    }

    fn open(&mut self) {
        let response = shapes::response(&self.run, None);
        self.put("response.created", json!({ "response": response }));
        self.put("response.in_progress", json!({ "response": response }));
        let item = shapes::message(&self.run, None);
        self.put("response.output_item.added", json!({ "output_index": 0, "item": item }));
        // Only the whole of an answer in JSON shows whether it is one.
        if self.schema.is_none() {
            self.put_part("response.content_part.added", "part", shapes::part(&Reply::Answer("")));
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
        let response = json!({ "response": shapes::response(&self.run, Some(outcome)) });
        match outcome.ending {
            Ending::Answered | Ending::Asks => {}
            Ending::Failed(_) => return self.put("response.failed", response),
            Ending::Cancelled => return self.put("response.incomplete", response),
            // The stream breaks off; the response can be read by its ID.
            Ending::Continues => return self.put("response.in_progress", response),
        }
        let schema = self.schema.take();
        let reply = Reply::of(outcome, schema.as_ref());
        let kind = reply.kind();
        let text = json!(reply.text());
        if schema.is_some() {
            let empty = shapes::part(&reply.with(""));
            self.put_part("response.content_part.added", "part", empty);
            self.put_part(&format!("response.{kind}.delta"), "delta", text.clone());
        }
        let name = if kind == "refusal" { "refusal" } else { "text" };
        self.put_part(&format!("response.{kind}.done"), name, text);
        self.put_part("response.content_part.done", "part", shapes::part(&reply));
        let item = shapes::message(&self.run, Some(&reply));
        self.put("response.output_item.done", json!({ "output_index": 0, "item": item }));
        let end = if outcome.is_cut { "response.incomplete" } else { "response.completed" };
        self.put(end, response);
    }
}
