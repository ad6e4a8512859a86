//! `POST /v1/chat/completions`: a whole conversation is sent, and its last question answered.

use std::borrow::Cow;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use perihelion_http::sse;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::messages::{self, Sent};
use super::refusal::{Body, Refusal};
use super::{models, shapes};
use crate::conversation::{self, AnswerPart, Begin, CONTINUES, Conversation, Ending};
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
    n: Option<u32>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct StreamOptions {
    include_usage: bool,
}

pub(super) async fn create(
    State(service): State<Service>,
    Body(create): Body<Create>,
) -> Result<Response, Refusal> {
    let model = create.model.clone().unwrap_or_else(|| perihelion_star::GRAPH.into());
    let team = models::team(&service, &model).await?;
    if create.n.is_some_and(|n| n != 1) {
        return Err(Refusal::invalid("n must be 1"));
    }
    let sent: Vec<Sent<'_>> = create.messages.iter().map(sent).collect();
    let (mut turn, before) =
        messages::conversation_of(&sent, "messages must end with a message of the user's")?;
    turn.team = team;
    turn.interactive = create.stream == Some(true);
    let turn = RequestFields::of_metadata(&json!(create.metadata))?.applied_to(&service, turn)?;
    let thread = messages::thread_for(&service, create.metadata.as_ref(), before).await?;
    let shown = json!({ "model": model, "metadata": create.metadata });
    let metadata = json!({ "openai": shown });
    let run = conversation::begin(
        &service,
        Begin { thread, at: None, turn, metadata, deliveries: Vec::new() },
    )
    .await?;
    let conversation = Conversation::follow(&service, run.clone()).await?;
    if create.stream == Some(true) {
        let counts = create.stream_options.is_some_and(|options| options.include_usage);
        return Ok(streamed(conversation, run, model, counts));
    }
    let outcome = conversation.outcome().await;
    if let Some(refusal) = refusal_of(&outcome.ending) {
        return Err(refusal);
    }
    let more = request_fields::asked_for(&service, &run).await?;
    let message =
        json!({ "role": "assistant", "content": outcome.text, "refusal": null, "annotations": [] });
    let choice =
        json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": "stop" });
    let mut shown = shell("chat.completion", &run, &model);
    shown["choices"] = json!([choice]);
    shown["usage"] = shapes::chat_usage(outcome.usage);
    for (name, value) in more {
        shown[name] = value;
    }
    Ok(Json(shown).into_response())
}

fn sent(message: &Value) -> Sent<'_> {
    let role = message["role"].as_str().unwrap_or_default();
    Sent { role, content: Cow::Borrowed(&message["content"]) }
}

/// Says why there is no answer, where there is none.
fn refusal_of(ending: &Ending) -> Option<Refusal> {
    let failed = |why: &str| Some(Refusal(StatusCode::INTERNAL_SERVER_ERROR, why.to_owned()));
    match ending {
        Ending::Answered | Ending::Asks => None,
        Ending::Failed(why) => failed(why),
        Ending::Cancelled => failed("the run was cancelled"),
        Ending::Continues => Some(Refusal(StatusCode::SERVICE_UNAVAILABLE, CONTINUES.to_owned())),
    }
}

fn shell(kind: &str, run: &Run, model: &str) -> Value {
    json!({
        "id": format!("chatcmpl-{}", run.id.simple()),
        "object": kind,
        "created": run.created_at.timestamp(),
        "model": model,
        "service_tier": "default",
        "system_fingerprint": null,
        "metadata": { "thread_id": run.thread },
    })
}

fn streamed(conversation: Conversation, run: Run, model: String, counts: bool) -> Response {
    let chunk = move |choices: Value| {
        let mut shown = shell("chat.completion.chunk", &run, &model);
        shown["choices"] = choices;
        shown
    };
    let delta = |delta: Value, reason: Value| json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason }]);
    let first = chunk(delta(json!({ "role": "assistant", "content": "" }), Value::Null));
    let state = (conversation, chunk, vec![first.to_string()], false);
    let stream = futures::stream::unfold(
        state,
        move |(mut conversation, chunk, mut ready, mut over)| async move {
            loop {
                if !ready.is_empty() {
                    let piece = sse::data(&ready.remove(0));
                    return Some((
                        Ok::<_, std::convert::Infallible>(piece),
                        (conversation, chunk, ready, over),
                    ));
                }
                if over {
                    return None;
                }
                match conversation.next().await? {
                    AnswerPart::Piece(piece) => ready
                        .push(chunk(delta(json!({ "content": piece }), Value::Null)).to_string()),
                    AnswerPart::End(outcome) => {
                        over = true;
                        ready.push(match refusal_of(&outcome.ending) {
                            Some(refusal) => refusal.shown().to_string(),
                            None => chunk(delta(json!({}), json!("stop"))).to_string(),
                        });
                        if counts {
                            let mut last = chunk(json!([]));
                            last["usage"] = shapes::chat_usage(outcome.usage);
                            ready.push(last.to_string());
                        }
                        ready.push("[DONE]".into());
                    }
                }
            }
        },
    );
    event_stream::response(HeaderMap::new(), stream)
}
