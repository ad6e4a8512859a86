//! The input of a response, listed as it was sent, without its files.

use axum::Json;
use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::messages::{self, Sent};
use super::refusal::Refusal;
use super::responses::found;
use crate::http::{JsonResult, Query};
use perihelion_service::Service;
use perihelion_service::kept::Run;

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
pub(super) async fn list(
    State(service): State<Service>,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> JsonResult<Refusal> {
    let run = found(&service, &id).await?;
    let mut items = shown(&run);
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
fn shown(run: &Run) -> Vec<Value> {
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
