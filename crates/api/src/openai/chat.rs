//! `POST /v1/chat/completions`: a whole conversation is sent, and its last question answered.

use std::borrow::Cow;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::format::{Format, Reply, ResponseFormat};
use super::messages::{self, Sent};
use super::parameters::Body;
use super::refusal::Refusal;
use super::{models, shapes};
use crate::conversation::{self, AnswerPart, Begin, CONTINUES, Conversation, Ending, Outcome};
use crate::event_stream;
use crate::request_fields::{self, RequestFields};
use perihelion_service::Service;
use perihelion_service::kept::Run;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Create {
    model: Option<String>,
    messages: Vec<Value>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    metadata: Option<Map<String, Value>>,
    response_format: Option<ResponseFormat>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct StreamOptions {
    include_usage: bool,
}

pub(super) async fn create(
    service: State<Service>,
    Body(create): Body<Create>,
) -> Result<Response, Refusal> {
    let model = create.model.clone().unwrap_or_else(|| perihelion_star::GRAPH.into());
    let team = models::team(&service, &model).await?;
    let format = create.response_format.map(Format::from).unwrap_or_default();
    let schema = format.schema("response_format.json_schema")?;
    let sent: Vec<Sent<'_>> = create.messages.iter().map(sent).collect();
    let (mut turn, before) = messages::conversation_of(&sent, "messages")?;
    turn.team = team;
    turn.interactive = create.stream == Some(true);
    turn.answer_schema.clone_from(&schema);
    let turn = RequestFields::of_metadata(create.metadata.as_ref())?.applied_to(&service, turn)?;
    let on = messages::thread_for(&service, create.metadata.as_ref(), before).await?;
    let shown = json!({ "model": model, "metadata": create.metadata });
    let begin = Begin::on(on, json!({ "openai": shown }));
    let run = conversation::begin(&service, begin, turn).await?;
    let conversation = Conversation::follow(&service, run.clone());
    let counts = create.stream_options.is_some_and(|options| options.include_usage);
    let completion = Completion { run, model, schema, counts };
    if create.stream == Some(true) {
        let first = completion.delta(&json!({ "role": "assistant", "content": "" }), None);
        let events = move |part| completion.events(part);
        return Ok(event_stream::of_conversation(conversation, vec![first], events));
    }
    let outcome = conversation.outcome().await;
    let mut shown = completion.whole(&outcome)?;
    for (name, value) in request_fields::asked_for(&service, &completion.run).await? {
        shown[name] = value;
    }
    Ok(Json(shown).into_response())
}

fn sent(message: &Value) -> Sent<'_> {
    let role = message["role"].as_str().unwrap_or_default();
    Sent { role, content: Cow::Borrowed(&message["content"]) }
}

fn finish_reason(outcome: &Outcome) -> Result<&'static str, Refusal> {
    let failed = |why: &str| Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, why));
    match &outcome.ending {
        Ending::Answered if outcome.is_cut => Ok("length"),
        Ending::Answered | Ending::Asks => Ok("stop"),
        Ending::Failed(why) => failed(why),
        Ending::Cancelled => failed("the run was cancelled"),
        Ending::Continues => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, CONTINUES)),
    }
}

struct Completion {
    run: Run,
    model: String,
    /// The schema that the answer must match.
    schema: Option<Value>,
    /// Whether the last chunk has the usage, and the others say that they have none.
    counts: bool,
}

impl Completion {
    fn shell(&self, kind: &str, choices: Value) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.run.id.simple()),
            "object": kind,
            "created": self.run.created_at.timestamp(),
            "model": self.model,
            "choices": choices,
            "service_tier": "default",
            "system_fingerprint": null,
            "metadata": { "thread_id": self.run.thread },
        })
    }

    fn delta(&self, delta: &Value, finish_reason: Option<&str>) -> Bytes {
        let choice =
            json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason });
        let mut shown = self.shell("chat.completion.chunk", json!([choice]));
        if self.counts {
            shown["usage"] = Value::Null;
        }
        event_stream::data(&shown.to_string())
    }

    /// Makes the chunks of a part; only the whole of an answer in JSON shows whether it is one.
    fn events(&self, part: AnswerPart) -> Vec<Bytes> {
        match part {
            AnswerPart::Piece(piece) if self.schema.is_none() => {
                vec![self.delta(&json!({ "content": piece }), None)]
            }
            AnswerPart::Piece(_) | AnswerPart::Started(_) => Vec::new(),
            AnswerPart::End(outcome) => self.end(&outcome),
        }
    }

    fn end(&self, outcome: &Outcome) -> Vec<Bytes> {
        let mut events = match finish_reason(outcome) {
            Err(refusal) => vec![event_stream::data(&refusal.shown().to_string())],
            Ok(reason) => {
                let mut last = json!({});
                if self.schema.is_some() {
                    let reply = Reply::of(outcome, self.schema.as_ref());
                    last[reply.field()] = json!(reply.text);
                }
                vec![self.delta(&last, None), self.delta(&json!({}), Some(reason))]
            }
        };
        if self.counts {
            let mut last = self.shell("chat.completion.chunk", json!([]));
            last["usage"] = shapes::chat_usage(outcome.usage);
            events.push(event_stream::data(&last.to_string()));
        }
        events.push(event_stream::data("[DONE]"));
        events
    }

    fn whole(&self, outcome: &Outcome) -> Result<Value, Refusal> {
        let reason = finish_reason(outcome)?;
        let mut message =
            json!({ "role": "assistant", "content": null, "refusal": null, "annotations": [] });
        let reply = Reply::of(outcome, self.schema.as_ref());
        message[reply.field()] = json!(reply.text);
        let choice =
            json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": reason });
        let mut shown = self.shell("chat.completion", json!([choice]));
        shown["usage"] = shapes::chat_usage(outcome.usage);
        Ok(shown)
    }
}
