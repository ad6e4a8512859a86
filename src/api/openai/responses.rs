//! `POST /v1/responses`: a turn of a thread, and its answer, whole or as it is written.

use axum::Json;
use axum::body::Bytes as Piece;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use perihelion_http::sse;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::refusal::{Body, Refusal};
use super::{models, shapes};
use crate::api::agent_server::text_of_content;
use crate::api::conversation::{
    self, AnswerPart, Begin, Conversation, Outcome, run_of, stood_after,
};
use crate::api::event_stream;
use crate::api::parts;
use crate::api::request_fields::{self, RequestFields};
use crate::ids::ThreadId;
use crate::service::kept::{Cancel, Run};
use crate::service::{Service, Turn};
use crate::swarm::Attachment;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Create {
    model: Option<String>,
    input: Value,
    instructions: Option<String>,
    previous_response_id: Option<String>,
    stream: Option<bool>,
    background: Option<bool>,
    metadata: Option<Map<String, Value>>,
    tools: Option<Vec<Value>>,
}

pub(super) async fn create(
    State(service): State<Service>,
    Body(create): Body<Create>,
) -> Result<Response, Refusal> {
    let model = create.model.clone().unwrap_or_else(|| crate::swarm::GRAPH.into());
    let team = models::team(&service, &model).await?;
    if create.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        return Err(Refusal::invalid("tools are the agents' own here; send none"));
    }
    let (question, attachments) = question(&create.input)?;
    let fields = RequestFields::of_metadata(&json!(create.metadata))?;
    let interactive = create.stream == Some(true);
    let system_prompt = create.instructions.clone();
    let turn = Turn { question, team, system_prompt, interactive, attachments, ..Turn::default() };
    let turn = fields.applied_to(&service, turn)?;
    let (thread, at) = the_thread(&service, &create).await?;
    let shown = json!({
        "model": model,
        "instructions": create.instructions,
        "previous_response_id": create.previous_response_id,
        "metadata": create.metadata.unwrap_or_default(),
    });
    let metadata = json!({ "openai": shown });
    let run =
        conversation::begin(&service, Begin { thread, at, turn, metadata, deliveries: Vec::new() })
            .await?;
    if create.stream == Some(true) {
        return streamed(&service, run).await;
    }
    if create.background == Some(true) {
        return Ok(Json(shapes::response(&run, None)).into_response());
    }
    Ok(ended(&service, &run).await?.into_response())
}

/// Waits for a response, and answers with it and with what its request wants beside it.
async fn ended(service: &Service, run: &Run) -> Result<Json<Value>, Refusal> {
    let outcome = Conversation::follow(service, run.clone()).await?.outcome().await;
    let mut shown = shapes::response(run, Some(&outcome));
    for (name, value) in request_fields::asked_for(service, run).await? {
        shown[name] = value;
    }
    Ok(Json(shown))
}

/// Finds the thread that continues, and where; or makes one.
async fn the_thread(
    service: &Service,
    create: &Create,
) -> Result<(ThreadId, Option<u64>), Refusal> {
    if let Some(previous) = &create.previous_response_id {
        let run = found(service, previous).await?;
        return Ok((ThreadId(run.thread), stood_after(service, &run).await?));
    }
    let named = create.metadata.as_ref().and_then(|metadata| metadata.get("thread_id"));
    if let Some(named) = named.and_then(Value::as_str) {
        let thread =
            named.parse().map_err(|_| Refusal::invalid("metadata.thread_id must be a UUID"))?;
        service.info(thread).await?;
        return Ok((thread, None));
    }
    let thread = ThreadId::new();
    service.create_thread(thread, &json!({})).await?;
    Ok((thread, None))
}

/// Reads an input: its text, or what the user says and sends at the end of its items.
fn question(input: &Value) -> Result<(String, Vec<Attachment>), Refusal> {
    let missing = || Refusal::invalid("input must be a text, or end with a message of the user's");
    let (words, attachments) = match input {
        Value::String(text) => (text.clone(), Vec::new()),
        Value::Array(items) => {
            let of_user = |one: &&Value| one["role"].as_str().is_none_or(|role| role == "user");
            let mut said: Vec<&Value> = items.iter().rev().take_while(of_user).collect();
            said.reverse();
            let contents: Vec<&Value> =
                said.into_iter().map(|one| one.get("content").unwrap_or(one)).collect();
            let texts: Vec<String> = contents.iter().map(|one| text_of_content(one)).collect();
            let attached = parts::attachments_of(contents.into_iter()).map_err(Refusal::invalid)?;
            (texts.join("\n\n"), attached)
        }
        _ => return Err(missing()),
    };
    parts::question(words, attachments).ok_or_else(missing)
}

async fn found(service: &Service, id: &str) -> Result<Run, Refusal> {
    let missing = || Refusal::missing(format!("Response with id '{id}' not found."));
    let run = run_of(id, "resp_").ok_or_else(missing)?;
    let found = service.kept().find_run(run).await?;
    found.filter(|run| run.metadata["openai"].is_object()).ok_or_else(missing)
}

pub(super) async fn get(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let run = found(&service, &id).await?;
    if !run.status.is_terminal() {
        return Ok(Json(shapes::response(&run, None)));
    }
    ended(&service, &run).await
}

pub(super) async fn delete(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let run = found(&service, &id).await?;
    if !run.status.is_terminal() {
        return Err(Refusal::invalid("the response is under way; cancel it first"));
    }
    service.delete_run(&run).await?;
    Ok(Json(json!({ "id": id, "object": "response", "deleted": true })))
}

pub(super) async fn cancel(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let run = found(&service, &id).await?;
    service.cancel(&run, Cancel::Interrupt).await?;
    let ended = service.ended(ThreadId(run.thread), run.id).await?.unwrap_or(run);
    let mut shown = shapes::response(&ended, None);
    shown["status"] = json!("cancelled");
    Ok(Json(shown))
}

/// A response that is written as it comes.
struct Streamed {
    conversation: Conversation,
    run: Run,
    number: u64,
    text: String,
    ready: std::collections::VecDeque<Piece>,
}

async fn streamed(service: &Service, run: Run) -> Result<Response, Refusal> {
    let conversation = Conversation::follow(service, run.clone()).await?;
    let ready = std::collections::VecDeque::new();
    let mut streamed = Streamed { conversation, run, number: 0, text: String::new(), ready };
    streamed.open();
    let stream = futures::stream::unfold(streamed, |mut streamed| async move {
        let piece = streamed.next().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), streamed))
    });
    Ok(event_stream::response(HeaderMap::new(), stream))
}

impl Streamed {
    fn put(&mut self, kind: &str, mut event: Value) {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(self.number);
        self.number += 1;
        self.ready.push_back(sse::event(kind, &event.to_string(), None));
    }

    fn open(&mut self) {
        let response = shapes::response(&self.run, None);
        self.put("response.created", json!({ "response": response }));
        self.put("response.in_progress", json!({ "response": response }));
        let mut item = shapes::message(&self.run, "", "in_progress");
        item["content"] = json!([]);
        self.put("response.output_item.added", json!({ "output_index": 0, "item": item }));
        let place = json!({ "item_id": shapes::message_id(&self.run), "output_index": 0, "content_index": 0 });
        self.put("response.content_part.added", with(&place, "part", shapes::part("")));
    }

    async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            match self.conversation.next().await? {
                AnswerPart::Piece(piece) => {
                    self.text.push_str(&piece);
                    let mut delta = self.place();
                    delta["delta"] = json!(piece);
                    delta["logprobs"] = json!([]);
                    self.put("response.output_text.delta", delta);
                }
                AnswerPart::End(outcome) => self.close(&outcome),
            }
        }
    }

    fn place(&self) -> Value {
        json!({ "item_id": shapes::message_id(&self.run), "output_index": 0, "content_index": 0 })
    }

    fn close(&mut self, outcome: &Outcome) {
        let response = shapes::response(&self.run, Some(outcome));
        if outcome.error.is_some() {
            self.put("response.failed", json!({ "response": response }));
            return;
        }
        let mut done = with(&self.place(), "text", json!(outcome.text));
        done["logprobs"] = json!([]);
        self.put("response.output_text.done", done);
        let part = with(&self.place(), "part", shapes::part(&outcome.text));
        self.put("response.content_part.done", part);
        let item = shapes::message(&self.run, &outcome.text, "completed");
        self.put("response.output_item.done", json!({ "output_index": 0, "item": item }));
        self.put("response.completed", json!({ "response": response }));
    }
}

fn with(place: &Value, name: &str, value: Value) -> Value {
    let mut event = place.clone();
    event[name] = value;
    event
}
