//! `/v1/responses`: a turn of a thread, and its answer, at once or later, whole or as it is written.

use std::borrow::Cow;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::format::Format;
use super::messages::{self, Sent};
use super::parameters::Body;
use super::refusal::Refusal;
use super::{models, shapes};
use crate::conversation::{self, Begin, Conversation, Ending};
use crate::http::{JsonResult, Query};
use crate::parts;
use crate::request_fields::{self, RequestFields};
use perihelion_engine::ids::ThreadId;
use perihelion_service::Service;
use perihelion_service::kept::{Cancel, Run};
use perihelion_star::{Message, Request};

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Create {
    model: Option<String>,
    input: Value,
    instructions: Option<String>,
    previous_response_id: Option<String>,
    stream: Option<bool>,
    /// Whether the answer is sent at once, before the response is complete.
    background: Option<bool>,
    /// Whether the response can be read later; true by default.
    store: Option<bool>,
    text: Option<Text>,
    metadata: Option<Map<String, Value>>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Text {
    format: Option<Format>,
    /// Only `medium`.
    verbosity: Option<String>,
}

impl Create {
    fn format(&self) -> Result<Format, Refusal> {
        let Some(text) = &self.text else { return Ok(Format::Text) };
        if let Some(other) = text.verbosity.as_ref().filter(|verbosity| *verbosity != "medium") {
            let why = format!("Unsupported value: 'text.verbosity' is not supported with {other}.");
            return Err(Refusal::invalid(why).about("text.verbosity", "unsupported_value"));
        }
        Ok(text.format.clone().unwrap_or_default())
    }
}

pub(super) async fn create(
    service: State<Service>,
    Body(create): Body<Create>,
) -> Result<Response, Refusal> {
    let model = create.model.clone().unwrap_or_else(|| perihelion_star::GRAPH.into());
    let team = models::team(&service, &model).await?;
    let format = create.format()?;
    let answer_schema = format.schema("text.format")?;
    let is_background = create.background == Some(true);
    let is_stored = create.store != Some(false);
    if is_background && !is_stored {
        let why = "Background responses must be stored: leave out 'store', or send true.";
        return Err(Refusal::invalid(why).about("store", "unsupported_value"));
    }
    let (turn, before) = messages::conversation_of(&sent(&create), "input")?;
    let fields = RequestFields::of_metadata(create.metadata.as_ref())?;
    let interactive = create.stream == Some(true);
    let turn = Request { team, interactive, answer_schema, ..turn };
    let turn = fields.applied_to(&service, turn)?;
    let (on, at) = the_thread(&service, &create, before).await?;
    let shown = json!({
        "model": model,
        "instructions": create.instructions,
        "previous_response_id": create.previous_response_id,
        "metadata": create.metadata.unwrap_or_default(),
        "background": is_background,
        "store": is_stored,
        "format": format,
        "input": parts::veiled(&create.input),
    });
    let temporary = on.1 && !is_stored;
    let begin = Begin { at, temporary, ..Begin::on(on, json!({ "openai": shown })) };
    let run = conversation::begin(&service, begin, turn).await?;
    if interactive {
        return Ok(shapes::streamed(&service, run, None));
    }
    if is_background {
        return Ok(Json(shapes::response(&run, None)).into_response());
    }
    Ok(ended(&service, &run).await?.into_response())
}

async fn ended(service: &Service, run: &Run) -> JsonResult<Refusal> {
    let outcome = Conversation::follow(service, run.clone()).outcome().await;
    let mut shown = shapes::response(run, Some(&outcome));
    if outcome.ending == Ending::Continues {
        return Ok(Json(shown));
    }
    for (name, value) in request_fields::asked_for(service, run).await? {
        shown[name] = value;
    }
    Ok(Json(shown))
}

/// Finds the thread and step to continue; or makes a thread that begins with the earlier messages. Returns whether the
/// thread is new, too.
async fn the_thread(
    service: &Service,
    create: &Create,
    before: Vec<Message>,
) -> Result<((ThreadId, bool), Option<u64>), Refusal> {
    if let Some(previous) = &create.previous_response_id {
        let run = found(service, previous).await?;
        let named = create.metadata.as_ref().and_then(|metadata| metadata.get("thread_id"));
        if named.is_some_and(|named| *named != json!(run.thread)) {
            let why = "Unsupported value: 'metadata.thread_id' is not the thread of 'previous_response_id'.";
            return Err(Refusal::invalid(why).about("metadata.thread_id", "unsupported_value"));
        }
        return Ok(((ThreadId(run.thread), false), service.step_after(&run).await?));
    }
    Ok((messages::thread_for(service, create.metadata.as_ref(), before).await?, None))
}

fn sent(create: &Create) -> Vec<Sent<'_>> {
    let instructions = create.instructions.as_ref();
    let instructions = instructions
        .map(|text| Sent { role: "system", content: Cow::Owned(Value::String(text.clone())) });
    instructions.into_iter().chain(messages::of_input(&create.input)).collect()
}

async fn found(service: &Service, id: &str) -> Result<Run, Refusal> {
    let missing = || Refusal::missing(format!("Response with id '{id}' not found."));
    let run =
        id.strip_prefix("resp_").and_then(|id| Uuid::parse_str(id).ok()).ok_or_else(missing)?;
    let found = service.kept().find_run(run).await?;
    let is_stored = |run: &Run| {
        let shown = &run.metadata["openai"];
        shown.is_object() && shown["store"] != false
    };
    found.filter(is_stored).ok_or_else(missing)
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Retrieve {
    stream: bool,
    /// The number of the event after which the stream begins.
    starting_after: Option<u64>,
}

pub(super) async fn get(
    service: State<Service>,
    Path(id): Path<String>,
    Query(Retrieve { stream, starting_after }): Query<Retrieve>,
) -> Result<Response, Refusal> {
    if stream {
        let run = found(&service, &id).await?;
        return Ok(shapes::streamed(&service, run, starting_after));
    }
    Ok(as_it_stands(&service, &id).await?.into_response())
}

async fn as_it_stands(service: &Service, id: &str) -> JsonResult<Refusal> {
    let run = found(service, id).await?;
    if !run.status.is_terminal() {
        return Ok(Json(shapes::response(&run, None)));
    }
    ended(service, &run).await
}

pub(super) async fn delete(service: State<Service>, Path(id): Path<String>) -> JsonResult<Refusal> {
    let run = found(&service, &id).await?;
    if !run.status.is_terminal() {
        return Err(Refusal::invalid("the response is in progress; cancel it first"));
    }
    service.delete_run(&run).await?;
    Ok(Json(json!({ "id": id, "object": "response", "deleted": true })))
}

pub(super) async fn cancel(service: State<Service>, Path(id): Path<String>) -> JsonResult<Refusal> {
    let run = found(&service, &id).await?;
    if service.cancel(&run, Cancel::Interrupt).await?.is_some() {
        service.ended(ThreadId(run.thread), run.id).await?;
    }
    as_it_stands(&service, &id).await
}

/// Items of a page by default, and at most.
const USUAL: usize = 20;
const MOST: usize = 100;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Page {
    /// The ID of the item after which the page begins.
    after: Option<String>,
    limit: Option<usize>,
    /// `asc` or `desc`, the default.
    order: Option<String>,
}

/// Lists the input of a response, newest item first.
pub(super) async fn input_items(
    service: State<Service>,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> JsonResult<Refusal> {
    let run = found(&service, &id).await?;
    let mut items = items_of(&run);
    match page.order.as_deref() {
        None | Some("desc") => items.reverse(),
        Some("asc") => {}
        Some(_) => {
            let why = "Invalid value for 'order': send asc or desc.";
            return Err(Refusal::invalid(why).about("order", "invalid_value"));
        }
    }
    if let Some(after) = &page.after {
        let Some(at) = items.iter().position(|item| item["id"] == after.as_str()) else {
            let why = format!("Item with id '{after}' not found.");
            return Err(Refusal::missing(why).about("after", "not_found"));
        };
        items.drain(..=at);
    }
    let limit = page.limit.unwrap_or(USUAL).clamp(1, MOST);
    let has_more = items.len() > limit;
    items.truncate(limit);
    let id_of = |item: Option<&Value>| item.map_or(Value::Null, |item| item["id"].clone());
    Ok(Json(json!({
        "object": "list",
        "first_id": id_of(items.first()),
        "last_id": id_of(items.last()),
        "has_more": has_more,
        "data": items,
    })))
}

/// Shows the items of a run's input, oldest first; one of an older version kept its question alone.
fn items_of(run: &Run) -> Vec<Value> {
    let stored = &run.metadata["openai"]["input"];
    let question = &run.kwargs["shown"]["input"]["messages"][0]["content"];
    let input = if stored.is_null() { question } else { stored };
    let item = |(number, sent): (usize, Sent<'_>)| {
        let kind = if sent.role == "assistant" { "output_text" } else { "input_text" };
        let content = match sent.content.as_ref() {
            Value::String(text) => json!([{ "type": kind, "text": text }]),
            parts => parts.clone(),
        };
        json!({
            "id": format!("msg_{}_{number}", run.id.simple()),
            "type": "message",
            "status": "completed",
            "role": sent.role,
            "content": content,
        })
    };
    messages::of_input(input).into_iter().enumerate().map(item).collect()
}
