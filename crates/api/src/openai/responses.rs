//! `POST /v1/responses`: a turn of a thread, and its answer, whole or as it is written.

use std::borrow::Cow;

use axum::Json;
use axum::body::Bytes as Piece;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use perihelion_http::sse;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::messages::{self, Sent};
use super::refusal::{Body, Refusal};
use super::{models, shapes};
use crate::conversation::{self, AnswerPart, Begin, Conversation, Ending, Outcome, run_of};
use crate::event_stream;
use crate::request_fields::{self, RequestFields};
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::{Cancel, Run};
use perihelion_service::{Service, Turn};
use perihelion_star::Message;

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
    let model = create.model.clone().unwrap_or_else(|| perihelion_star::GRAPH.into());
    let team = models::team(&service, &model).await?;
    if create.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        return Err(Refusal::invalid("tools are the agents' own here; send none"));
    }
    let (turn, before) = messages::conversation_of(&sent(&create), MISSING)?;
    let fields = RequestFields::of_metadata(&json!(create.metadata))?;
    let interactive = create.stream == Some(true);
    let turn = fields.applied_to(&service, Turn { team, interactive, ..turn })?;
    let (thread, at) = the_thread(&service, &create, before).await?;
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
    if outcome.ending == Ending::Continues {
        return Ok(Json(shown));
    }
    for (name, value) in request_fields::asked_for(service, run).await? {
        shown[name] = value;
    }
    Ok(Json(shown))
}

/// Finds the thread that continues, and where; or makes one that begins with what was said before.
async fn the_thread(
    service: &Service,
    create: &Create,
    before: Vec<Message>,
) -> Result<(ThreadId, Option<u64>), Refusal> {
    if let Some(previous) = &create.previous_response_id {
        let run = found(service, previous).await?;
        return Ok((ThreadId(run.thread), service.step_after(&run).await?));
    }
    Ok((messages::thread_for(service, create.metadata.as_ref(), before).await?, None))
}

/// Says what an input lacks.
const MISSING: &str = "input must be a text, or end with a message of the user's";

/// Reads the instructions and the messages of a request; what else a client may send of a conversation says nothing here.
fn sent(create: &Create) -> Vec<Sent<'_>> {
    let instructions = create.instructions.as_ref();
    let instructions = instructions
        .map(|text| Sent { role: "system", content: Cow::Owned(Value::String(text.clone())) });
    let by_user = |content| Sent { role: "user", content };
    let items = create.input.as_array().map_or(&[][..], Vec::as_slice);
    let text = create.input.is_string().then(|| by_user(Cow::Borrowed(&create.input)));
    let items =
        items.iter().filter_map(|item| match (item["type"].as_str(), item.get("content")) {
            (None | Some("message"), Some(content)) => {
                let role = item["role"].as_str().unwrap_or("user");
                Some(Sent { role, content: Cow::Borrowed(content) })
            }
            // A text by itself, or a part of what the user says.
            (None, None) if item.is_string() => Some(by_user(Cow::Borrowed(item))),
            (Some("input_text" | "input_image" | "input_file"), None) => {
                Some(by_user(Cow::Owned(json!([item]))))
            }
            _ => None,
        });
    instructions.into_iter().chain(text).chain(items).collect()
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
    as_it_stands(&service, &id).await
}

async fn as_it_stands(service: &Service, id: &str) -> Result<Json<Value>, Refusal> {
    let run = found(service, id).await?;
    if !run.status.is_terminal() {
        return Ok(Json(shapes::response(&run, None)));
    }
    ended(service, &run).await
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
    if service.cancel(&run, Cancel::Interrupt).await?.is_some() {
        service.ended(ThreadId(run.thread), run.id).await?;
    }
    as_it_stands(&service, &id).await
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
        let response = json!({ "response": shapes::response(&self.run, Some(outcome)) });
        match outcome.ending {
            Ending::Answered | Ending::Asks => {}
            Ending::Failed(_) => return self.put("response.failed", response),
            Ending::Cancelled => return self.put("response.incomplete", response),
            // The stream breaks off; the response can be had by its id.
            Ending::Continues => return self.put("response.in_progress", response),
        }
        let mut done = with(&self.place(), "text", json!(outcome.text));
        done["logprobs"] = json!([]);
        self.put("response.output_text.done", done);
        let part = with(&self.place(), "part", shapes::part(&outcome.text));
        self.put("response.content_part.done", part);
        let item = shapes::message(&self.run, &outcome.text, "completed");
        self.put("response.output_item.done", json!({ "output_index": 0, "item": item }));
        self.put("response.completed", response);
    }
}

fn with(place: &Value, name: &str, value: Value) -> Value {
    let mut event = place.clone();
    event[name] = value;
    event
}
