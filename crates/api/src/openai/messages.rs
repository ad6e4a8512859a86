//! The messages of clients: the question at their end, and the earlier ones, which begin a thread.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::refusal::Refusal;
use crate::agent_server::text_of_content;
use crate::parts;
use perihelion_engine::graph::END;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::Edit;
use perihelion_service::Service;
use perihelion_star::{Message, Request};

pub(super) struct Sent<'a> {
    pub role: &'a str,
    pub content: Cow<'a, Value>,
}

impl Sent<'_> {
    fn text(&self) -> String {
        text_of_content(&self.content)
    }

    fn is_instruction(&self) -> bool {
        matches!(self.role, "system" | "developer")
    }

    fn is_talk(&self) -> bool {
        matches!(self.role, "user" | "assistant")
    }
}

/// Reads the messages of a response's input; other items of a conversation have no effect.
pub(super) fn of_input(input: &Value) -> Vec<Sent<'_>> {
    let by_user = |content| Sent { role: "user", content };
    let items = input.as_array().map_or(&[][..], Vec::as_slice);
    let text = input.is_string().then(|| by_user(Cow::Borrowed(input)));
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
    text.into_iter().chain(items).collect()
}

/// Splits messages into the question at their end, with the instructions among them, and the conversation before.
pub(super) fn conversation_of(
    messages: &[Sent<'_>],
    place: &str,
) -> Result<(Request, Vec<Message>), Refusal> {
    if let Some(other) = messages.iter().find(|one| !one.is_instruction() && !one.is_talk()) {
        let role = other.role;
        let why = format!(
            "Invalid value: '{role}'. Supported roles are: 'system', 'developer', 'user' and 'assistant'."
        );
        return Err(Refusal::invalid(why).about(place, "unsupported_value"));
    }
    let instructions = messages.iter().filter(|one| one.is_instruction()).map(Sent::text);
    let instructions: Vec<String> = instructions.collect();
    let talk: Vec<&Sent<'_>> = messages.iter().filter(|one| one.is_talk()).collect();
    let at = talk.iter().rposition(|one| one.role != "user").map_or(0, |at| at + 1);
    let (before, asked) = talk.split_at(at);
    let words = asked.iter().map(|one| one.text()).collect::<Vec<_>>().join("\n\n");
    // Clients send the whole conversation each time, with all that ever came with it.
    let attachments = parts::attachments_of(talk.iter().map(|one| one.content.as_ref()));
    let attachments =
        attachments.map_err(|error| Refusal::from(error).about(place, "invalid_value"))?;
    let (question, attachments) = parts::question(words, attachments).ok_or_else(|| {
        let why = format!("'{place}' must be a text or end with a message of the role user");
        Refusal::invalid(why).about(place, "missing_required_parameter")
    })?;
    let before = before.iter().enumerate().map(|(index, one)| Message {
        id: format!("0.{index}"),
        role: one.role.to_owned(),
        content: one.text(),
        ..Message::default()
    });
    let system_prompt = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
    Ok((Request { question, system_prompt, attachments, ..Request::default() }, before.collect()))
}

/// Finds the thread in a request's metadata, or makes one that begins with the earlier messages; returns whether it is new.
pub(super) async fn thread_for(
    service: &Service,
    metadata: Option<&Map<String, Value>>,
    before: Vec<Message>,
) -> Result<(ThreadId, bool), Refusal> {
    let named = metadata.and_then(|metadata| metadata.get("thread_id"));
    if let Some(named) = named.and_then(Value::as_str) {
        let thread = named.parse().map_err(|_| {
            Refusal::invalid("metadata.thread_id must be a UUID")
                .about("metadata.thread_id", "invalid_value")
        })?;
        service.info(thread).await?;
        return Ok((thread, false));
    }
    let (thread, _) = service.thread_for_turn(None, &json!({})).await?;
    if !before.is_empty() {
        let update = json!({ "messages": before });
        let edit = Edit { update, as_node: Some(END.to_owned()), ..Edit::default() };
        let edited = service.runtime().edit(thread, edit).await;
        service.unless_refused(Some(thread), edited).await?;
    }
    Ok((thread, true))
}
