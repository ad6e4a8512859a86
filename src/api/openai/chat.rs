//! `POST /v1/chat/completions`: a whole conversation is sent, and its last question answered.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use perihelion_http::sse;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::refusal::{Body, Refusal};
use super::{models, shapes};
use crate::api::agent_server::text_of_content;
use crate::api::conversation::{self, AnswerPart, Begin, Conversation};
use crate::api::event_stream;
use crate::api::parts;
use crate::api::request_fields::{self, RequestFields};
use crate::graph::END;
use crate::ids::ThreadId;
use crate::service::kept::Run;
use crate::service::{Service, Turn};
use crate::swarm::{GraphUpdate, Message};

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
    let model = create.model.clone().unwrap_or_else(|| crate::swarm::GRAPH.into());
    let team = models::team(&service, &model).await?;
    if create.n.is_some_and(|n| n != 1) {
        return Err(Refusal::invalid("n must be 1"));
    }
    let (mut turn, before) = conversation_of(&create.messages)?;
    turn.team = team;
    turn.interactive = create.stream == Some(true);
    let turn = RequestFields::of_metadata(&json!(create.metadata))?.applied_to(&service, turn)?;
    let named = create.metadata.as_ref().and_then(|metadata| metadata.get("thread_id"));
    let thread = match named.and_then(Value::as_str) {
        Some(named) => {
            let thread =
                named.parse().map_err(|_| Refusal::invalid("metadata.thread_id must be a UUID"))?;
            service.info(thread).await?;
            thread
        }
        None => thread_with(&service, before).await?,
    };
    let shown = json!({ "model": model, "metadata": create.metadata });
    let metadata = json!({ "openai": shown });
    let run = conversation::begin(
        &service,
        Begin { thread, at: None, turn, metadata, deliveries: Vec::new() },
    )
    .await?;
    let conversation = Conversation::follow(&service, run.clone()).await?;
    match create.stream {
        Some(true) => {
            let counts = create.stream_options.is_some_and(|options| options.include_usage);
            Ok(streamed(conversation, run, model, counts))
        }
        _ => {
            let outcome = conversation.outcome().await;
            let more = request_fields::asked_for(&service, &run).await?;
            if let Some(error) = outcome.error {
                return Err(Refusal(axum::http::StatusCode::INTERNAL_SERVER_ERROR, error));
            }
            let message = json!({ "role": "assistant", "content": outcome.text, "refusal": null, "annotations": [] });
            let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": "stop" });
            let mut shown = shell("chat.completion", &run, &model);
            shown["choices"] = json!([choice]);
            shown["usage"] = shapes::chat_usage(outcome.usage);
            for (name, value) in more {
                shown[name] = value;
            }
            Ok(Json(shown).into_response())
        }
    }
}

/// Parts a conversation into the question at its end and what was said before it.
fn conversation_of(messages: &[Value]) -> Result<(Turn, Vec<Message>), Refusal> {
    let role = |one: &Value| one["role"].as_str().unwrap_or_default().to_owned();
    let text = |one: &Value| text_of_content(&one["content"]);
    let system: Vec<String> = messages
        .iter()
        .filter(|one| matches!(role(one).as_str(), "system" | "developer"))
        .map(text)
        .collect();
    let said: Vec<&Value> =
        messages.iter().filter(|one| matches!(role(one).as_str(), "user" | "assistant")).collect();
    let at = said.iter().rposition(|one| role(one) != "user").map_or(0, |at| at + 1);
    let words = said[at..].iter().map(|one| text(one)).collect::<Vec<_>>().join("\n\n");
    // Clients send the whole conversation each time, with all that ever came with it.
    let attachments =
        parts::attachments_of(said.iter().map(|one| &one["content"])).map_err(Refusal::invalid)?;
    let (question, attachments) = parts::question(words, attachments)
        .ok_or_else(|| Refusal::invalid("messages must end with a message of the user's"))?;
    let before = said[..at].iter().enumerate().map(|(index, one)| Message {
        citations_removed: 0,
        id: format!("0.{index}"),
        role: role(one),
        name: None,
        content: text(one),
        tainted_by: Default::default(),
        attached: Vec::new(),
    });
    let system_prompt = (!system.is_empty()).then(|| system.join("\n\n"));
    Ok((Turn { question, system_prompt, attachments, ..Turn::default() }, before.collect()))
}

/// Makes a thread that begins with what was said before.
async fn thread_with(service: &Service, before: Vec<Message>) -> Result<ThreadId, Refusal> {
    let thread = ThreadId::new();
    service.create_thread(thread, &json!({})).await?;
    if !before.is_empty() {
        let update = GraphUpdate::new().messages(before);
        service.runtime().edit(thread, update, Some(END), &[]).await?;
    }
    Ok(thread)
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
                        if let Some(error) = outcome.error {
                            ready.push(
                                json!({ "error": { "message": error, "type": "server_error" } })
                                    .to_string(),
                            );
                        }
                        ready.push(chunk(delta(json!({}), json!("stop"))).to_string());
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
