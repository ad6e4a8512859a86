//! The words of a model exchange: request, response, usage, and the trait that turns one into the other.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Error, attached::Attached, fit};

/// The part a model call plays; sent as `x-perihelion-role` and used to pick per-role settings.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    Supervisor,
    Agent,
    Reflector,
    Qa,
    Architect,
    Extractor,
    Summarizer,
    Classifier,
    Reranker,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    pub role: MessageRole,
    /// Text; empty if the message has only tool calls.
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<Attached>,
}

impl ChatMessage {
    pub fn system(content: impl Into<String>) -> Self {
        Self::text(MessageRole::System, content)
    }

    pub fn user(content: impl Into<String>) -> Self {
        Self::text(MessageRole::User, content)
    }

    /// Makes an assistant message without tool calls.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::text(MessageRole::Assistant, content)
    }

    pub fn tool(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        let mut message = Self::text(MessageRole::Tool, content);
        message.tool_call_id = Some(call_id.into());
        message
    }

    fn text(role: MessageRole, content: impl Into<String>) -> Self {
        let content = content.into();
        Self { role, content, tool_calls: vec![], tool_call_id: None, attached: vec![] }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in the conversation; invented (`call_<number>`) if the endpoint sent none or a repeated one.
    pub id: String,
    pub name: String,
    /// The model's arguments; a text that is not a JSON object stays unchanged.
    pub arguments: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

/// The JSON form an answer must have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputFormat {
    /// Schema name on the wire, such as `supervisor_decision`.
    pub name: String,
    /// Strict JSON Schema.
    pub schema: Value,
}

/// One request to a model; plain data, so that it can be hashed and journalled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    pub role: Role,
    /// Sent as `x-perihelion-thread`.
    pub thread: String,
    /// Sent as `x-perihelion-agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Sent as `x-perihelion-stage`: which stage of its pipeline an agent is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    pub messages: Vec<ChatMessage>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat>,
    /// How the answer is obtained; not recorded.
    #[serde(skip)]
    pub manner: Manner,
}

/// How an answer is obtained, in addition to the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// It is streamed, and ended when it repeats itself.
    pub is_watched: bool,
    /// The temperature is another one than usual, so that the same question can have another answer.
    pub is_varied: bool,
    /// Texts and lists of the schema are bounded, so that the answer ends within the model's output limit.
    pub is_bounded: bool,
    /// The schema is a caller's: if an endpoint refuses it, this says nothing about other schemas.
    pub is_foreign: bool,
}

impl ChatRequest {
    /// Makes a request without tools, for an answer in words.
    pub fn new(role: Role, thread: impl Into<String>, messages: Vec<ChatMessage>) -> Self {
        let thread = thread.into();
        let manner = Manner::default();
        Self {
            role,
            thread,
            agent: None,
            stage: None,
            messages,
            tools: vec![],
            format: None,
            manner,
        }
    }

    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    #[must_use]
    pub fn stage(mut self, stage: impl Into<String>) -> Self {
        self.stage = Some(stage.into());
        self
    }
}

/// Tokens of one call, as the endpoint counted them; estimated where it did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Some of it is an estimate, because an endpoint did not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    pub fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        // An endpoint can report any number.
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.estimated = self.estimated || other.estimated;
    }
}

/// The finish reasons of answers that are not whole, in the words of Chat Completions.
pub(super) const LENGTH: &str = "length";
pub(super) const FILTERED: &str = "content_filter";
pub(super) const BROKEN: &str = "error";
/// Not an endpoint's word: the answer repeated itself and was ended here.
pub(super) const REPEATED: &str = "repetition";
/// The run's time was up.
const LATE: &str = "deadline";
/// Not an endpoint's word either: a text in the answer ended where the schema ends it.
pub(super) const FILLED: &str = "filled";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatResponse {
    /// Text of the answer; empty when only tools are called.
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Model that answered, as the endpoint named it.
    #[serde(default)]
    pub model: String,
    /// The provider, if the protocol tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    #[serde(default)]
    pub usage: Usage,
    /// The model's reasoning, if the endpoint sends it separately; never sent back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

impl ChatResponse {
    /// Makes the part of an answer that arrived before the call failed; its tokens are estimated.
    pub fn broken_off(request: &ChatRequest, content: String, error: &Error) -> Self {
        let reason = if matches!(error, Error::Late { .. }) { LATE } else { BROKEN };
        let finish_reason = Some(reason.to_owned());
        let mut part = Self { content, finish_reason, ..Self::default() };
        part.usage = fit::estimate(request, &part);
        part
    }

    /// Returns why the answer is incomplete, if it is: then it is only a part, and calls no tools.
    pub fn cut(&self) -> Option<&'static str> {
        match self.finish_reason.as_deref()? {
            LENGTH => Some("the model reached its output limit (raise models.max_tokens)"),
            FILTERED => Some("the endpoint's content filter stopped it"),
            BROKEN => Some("the endpoint ended it before its end"),
            LATE => Some("the time limit of the run was reached"),
            REPEATED => Some("the model repeated itself without end"),
            FILLED => Some("a text in it is as long as models.max_tokens permits"),
            _ => None,
        }
    }

    /// Returns whether the answer was cut off because of its length: a shorter one would be complete.
    pub fn is_too_long(&self) -> bool {
        matches!(self.finish_reason.as_deref(), Some(LENGTH | REPEATED | FILLED))
    }

    /// Returns whether the answer in JSON is valid, but a text in it is probably only a part.
    pub(super) fn is_filled(&self) -> bool {
        self.finish_reason.as_deref() == Some(FILLED)
    }

    pub fn into_text(self) -> Result<String, Error> {
        if let Some(reason) = self.cut() {
            return Err(Error::Truncated { reason });
        }
        match self.content.trim() {
            "" => Err(Error::Empty),
            text => Ok(text.to_owned()),
        }
    }
}

/// Receives the pieces of a streamed answer as they arrive.
pub type TokenSink<'a> = &'a mut (dyn FnMut(&str) + Send);

#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Answers one request; with a sink the answer is streamed, and the whole of it returned as well.
    ///
    /// # Errors
    /// [`Error`] after the adapter's own retries are used up; its text names the endpoint and the way out.
    async fn chat(
        &self,
        request: &ChatRequest,
        sink: Option<TokenSink<'_>>,
    ) -> Result<ChatResponse, Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_may_report_any_number_of_tokens() {
        let mut all = Usage { input_tokens: 7, output_tokens: 2, ..Usage::default() };
        all += Usage { input_tokens: u64::MAX, output_tokens: 1, ..Usage::default() };
        assert_eq!((all.input_tokens, all.output_tokens), (u64::MAX, 3));
        assert_eq!(all.total(), u64::MAX);
    }
}
