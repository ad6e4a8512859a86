//! Finds out with a few short requests what an endpoint does with the forms that requests have.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::dialect::JsonForm;
use super::{Lane, lane, list};
use crate::structured::read_valid;
use crate::{
    Attached, ChatMessage, ChatRequest, ChatResponse, Error, OutputFormat, Role, ToolSpec,
};
use perihelion_settings::config::{Input, Inputs, JsonMode, ModelSettings};

/// Longest wait for one answer: a local server can need time to load the model.
const PATIENCE: Duration = Duration::from_secs(60);

/// Most tokens of an answer.
const TOKENS: u32 = 64;

/// Tokens that the tool of the probe takes at least in a prompt.
const OF_TOOL: u64 = 10;

/// A red square of 32 pixels.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAKklEQVR42mM4ISJCU8QwasGoBaMWjFowasGoBaMWjFowasGoBaMWDBULADFgwC4sTqoDAAAAAElFTkSuQmCC";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tools {
    Read,
    /// The endpoint accepts them, but the prompt takes as many tokens as without them.
    Dropped,
    Refused(String),
}

/// How an endpoint treats the schema of a JSON answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Schemas {
    /// Answers are valid against it.
    Enforced,
    /// It is accepted, but an answer was not valid.
    Ignored,
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Abilities {
    pub schemas: Schemas,
    pub tools: Tools,
    pub streams: bool,
    /// Tokens are counted, in whole and in streamed answers.
    pub counts: bool,
    pub sees: bool,
    /// Tokens of question and answer together, where the endpoint says.
    pub window: Option<u32>,
}

/// A window below which plans of several tasks leave too little space.
const SMALL: u32 = 16_384;

impl Abilities {
    /// Returns whether decisions are better requested in their compact form.
    pub fn suits_compact(&self) -> bool {
        self.schemas != Schemas::Enforced || self.window.is_some_and(|tokens| tokens < SMALL)
    }
}

/// Finds out what an endpoint does for the model of these settings.
///
/// # Errors
/// Those of a model call, if the endpoint does not answer the plainest request.
pub async fn probe(url: &str, settings: &ModelSettings) -> Result<Abilities, Error> {
    let lane = lane(
        url,
        ModelSettings {
            timeout: settings.timeout.min(PATIENCE),
            max_retries: 0,
            json_mode: JsonMode::Auto,
            max_tokens: Some(TOKENS),
            context_window: None,
            input: Inputs::of([Input::Image]),
            ..settings.clone()
        },
    )?;
    let plain = lane.chat(&greeting(), None).await?;
    let mut sink = |_: &str| {};
    let streamed = lane.chat(&greeting(), Some(&mut sink)).await;
    let is_counted = |answer: &ChatResponse| !answer.usage.estimated;
    let counts = is_counted(&plain) && streamed.as_ref().is_ok_and(is_counted);
    let tools = tools(&lane, &plain).await;
    let schemas = schemas(&lane).await;
    let seen = lane.chat(&showing(), None).await;
    Ok(Abilities {
        schemas,
        tools,
        streams: streamed.is_ok() && !lane.dialect.ignores_streaming(),
        counts,
        sees: seen.is_ok(),
        window: window(url, &lane, settings).await,
    })
}

pub fn greeting() -> ChatRequest {
    let message = ChatMessage::user("Reply with the word hello.");
    ChatRequest::new(Role::Qa, "doctor", vec![message])
}

fn showing() -> ChatRequest {
    let mut request = greeting();
    request.messages[0].attached.push(Attached {
        artifact: "probe".to_owned(),
        name: "square.png".to_owned(),
        media_type: "image/png".to_owned(),
        bytes: PICTURE.len(),
        data: Some(PICTURE.into()),
    });
    request
}

async fn tools(lane: &Lane, plain: &ChatResponse) -> Tools {
    let mut request = greeting();
    request.tools.push(ToolSpec {
        name: "weather_of_city".to_owned(),
        description: "Returns the weather of a city on a day, with temperature, wind and rain."
            .to_owned(),
        parameters: json!({
            "type": "object", "required": ["city"],
            "properties": { "city": { "type": "string", "description": "Name of the city" } },
        }),
    });
    match lane.chat(&request, None).await {
        Err(error) => Tools::Refused(error.to_string()),
        Ok(answer)
            if answer.tool_calls.is_empty()
                && !answer.usage.estimated
                && answer.usage.input_tokens < plain.usage.input_tokens + OF_TOOL =>
        {
            Tools::Dropped
        }
        Ok(_) => Tools::Read,
    }
}

/// Requests a greeting in a form that a model chooses only by a schema.
async fn schemas(lane: &Lane) -> Schemas {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["choice"],
        "properties": { "choice": { "type": "string", "enum": ["north", "south"] } },
    });
    let mut request = greeting();
    request.format = Some(OutputFormat { name: "probe".to_owned(), schema: schema.clone() });
    match lane.chat(&request, None).await {
        Ok(_) if lane.dialect.forms(&request).json != JsonForm::Schema => Schemas::Refused,
        Ok(answer) if read_valid(&schema, &answer.content).is_some() => Schemas::Enforced,
        // A model that reasons first did not come to its answer.
        Ok(answer) if answer.cut().is_some() && answer.reasoning.is_some() => Schemas::Enforced,
        Ok(_) => Schemas::Ignored,
        Err(_) => Schemas::Refused,
    }
}

/// Looks up the window where servers state it: in the list of models, or at a local server's own addresses.
async fn window(url: &str, lane: &Lane, settings: &ModelSettings) -> Option<u32> {
    let number = |place: &Value| u32::try_from(place.as_u64().filter(|tokens| *tokens > 0)?).ok();
    let listed = list(lane, settings.api, super::PATIENCE).await.ok().flatten().unwrap_or_default();
    let of_model = |name: &&str| *name == settings.model || listed.len() == 1;
    for one in listed.iter().filter(|one| one.name().is_some_and(|name| of_model(&name))) {
        const PLACES: [&str; 7] = [
            "/meta/n_ctx",
            "/max_model_len",
            "/context_length",
            "/context_window",
            "/max_context_length",
            "/max_input_tokens",
            "/inputTokenLimit",
        ];
        let stated = PLACES.iter().find_map(|place| number(one.0.pointer(place)?));
        if stated.is_some() {
            return stated;
        }
    }
    // LM Studio and Ollama, which are asked without a key and only where no provider of others is.
    let root =
        url.trim_end_matches('/').strip_suffix("/v1").filter(|url| url.starts_with("http:"))?;
    for (path, list, name, tokens) in [
        ("/api/v0/models", "data", "id", "loaded_context_length"),
        ("/api/ps", "models", "model", "context_length"),
    ] {
        let Some(answer) = lane.transport.local(&format!("{root}{path}")).await else { continue };
        let models = answer[list].as_array().into_iter().flatten();
        let found = models.filter(|one| one[name] == settings.model.as_str());
        if let Some(tokens) = found.filter_map(|one| number(&one[tokens])).next() {
            return Some(tokens);
        }
    }
    None
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
