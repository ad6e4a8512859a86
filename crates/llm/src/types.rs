//! The words of a model exchange: request, response, usage, and the trait that turns one into the other.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attached::Attached;
use perihelion_http::reach;

/// The part a model call plays; sent as `x-perihelion-role` and used to pick per-role settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// Every role.
    pub const ALL: [Role; 9] = [
        Role::Supervisor,
        Role::Agent,
        Role::Reflector,
        Role::Qa,
        Role::Architect,
        Role::Extractor,
        Role::Summarizer,
        Role::Classifier,
        Role::Reranker,
    ];

    /// Returns the role's name on the wire and in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Supervisor => "supervisor",
            Role::Agent => "agent",
            Role::Reflector => "reflector",
            Role::Qa => "qa",
            Role::Architect => "architect",
            Role::Extractor => "extractor",
            Role::Summarizer => "summarizer",
            Role::Classifier => "classifier",
            Role::Reranker => "reranker",
        }
    }
}

/// Who speaks in a [`ChatMessage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    System,
    User,
    Assistant,
    Tool,
}

/// One message of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    pub role: MessageRole,
    /// Text; empty where the message only carries tool calls.
    pub content: String,
    /// Calls the assistant asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a `tool` message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Images and files that a user sent with it.
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
        let tool_calls = Vec::new();
        let tool_call_id = None;
        let attached = Vec::new();
        Self { role, content: content.into(), tool_calls, tool_call_id, attached }
    }
}

/// A call of a tool, asked for by the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in the conversation; made up (`call_<number>`) where the endpoint sent none or one that is taken.
    pub id: String,
    pub name: String,
    /// Arguments as the model wrote them; `Err` text is kept when they are not a JSON object.
    pub arguments: Value,
}

/// A tool as shown to the model.
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
}

impl ChatRequest {
    /// Makes a request without tools, for an answer in words.
    pub fn new(role: Role, thread: impl Into<String>, messages: Vec<ChatMessage>) -> Self {
        let thread = thread.into();
        Self { role, thread, agent: None, stage: None, messages, tools: vec![], format: None }
    }

    /// Says for which agent it is made.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Says in which stage it is made.
    #[must_use]
    pub fn stage(mut self, stage: impl Into<String>) -> Self {
        self.stage = Some(stage.into());
        self
    }
}

/// Tokens of one call, as the endpoint counted them; zero where it did not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    /// Those of the input that the endpoint had read before and kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    /// Returns the tokens of both directions.
    pub fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_tokens += other.cached_tokens;
    }
}

/// The finish reasons of answers that are not whole, in the words of Chat Completions.
pub(super) const LENGTH: &str = "length";
pub(super) const FILTERED: &str = "content_filter";
pub(super) const BROKEN: &str = "error";

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatResponse {
    /// Text of the answer; empty when only tools are called.
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Model that answered, as the endpoint named it.
    #[serde(default)]
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    #[serde(default)]
    pub usage: Usage,
    /// The model's reasoning, where the endpoint sends it beside the answer; never sent back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

impl ChatResponse {
    /// Says why the answer ends before its end, if it does: then it is only a part, and calls no tools.
    pub fn cut(&self) -> Option<&'static str> {
        match self.finish_reason.as_deref()? {
            LENGTH => Some("the model reached its output limit (raise models.max_tokens)"),
            FILTERED => Some("the endpoint's content filter stopped it"),
            BROKEN => Some("the endpoint ended it before its end"),
            _ => None,
        }
    }

    /// Tells whether the answer was cut off because it is too long: a shorter one would be whole.
    pub fn is_too_long(&self) -> bool {
        self.finish_reason.as_deref() == Some(LENGTH)
    }

    /// Returns the text of an answer that is to be one.
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

/// A language model behind any endpoint.
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

/// Why a model call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no model endpoint is configured: set OPENAI_BASE_URL (and OPENAI_API_KEY), or try `perihelion demo`"
    )]
    NotConfigured,
    /// The endpoint could not be reached.
    #[error("cannot reach the model endpoint {endpoint}: {reason}; {}", way_there(reason))]
    Unreachable { endpoint: String, reason: String },
    #[error(
        "the model endpoint {endpoint} did not answer within {seconds} s; raise models.timeout_sec or check the endpoint"
    )]
    Timeout { endpoint: String, seconds: f64 },
    #[error("the model endpoint {endpoint} refused the request with status {status}: {message}")]
    Refused { endpoint: String, status: u16, message: String },
    /// The endpoint's answer could not be understood.
    #[error("the model endpoint {endpoint} sent an answer that cannot be read: {reason}")]
    Malformed { endpoint: String, reason: String },
    /// The answer is only a part.
    #[error("the model's answer was cut off: {reason}")]
    Truncated { reason: &'static str },
    /// There is no answer, also after the adapter's retries.
    #[error("the model gave an empty answer")]
    Empty,
    /// A JSON answer broke its schema, also after the repairs.
    #[error(
        "the {role} model did not answer with valid `{schema}` JSON in {attempts} attempts: {problems}"
    )]
    Invalid { role: &'static str, schema: String, attempts: u32, problems: String },
    /// A prompt template is missing, broken, or wants a variable that it was not given.
    #[error("the prompt template {name} cannot be used: {reason}")]
    Prompt { name: String, reason: String },
    /// The scripted model could not be started or its script could not be read.
    #[error("the scripted model cannot be used: {0}")]
    Script(String),
    /// The run's time was up before the answer was there.
    #[error("the time limit of {seconds} s was reached before the model had answered")]
    Late { seconds: u64 },
    /// The call failed when it was recorded.
    #[error("{0}")]
    Recorded(String),
    /// The call was cut off by the caller's own machinery (journal, cancellation).
    #[error("the model call was not made: {0}")]
    Interrupted(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<reqwest::Error> for Error {
    /// Says that no HTTP client could be made.
    fn from(error: reqwest::Error) -> Self {
        let reason = format!("no HTTP client could be made: {}", reach::cause(&error));
        Self::Unreachable { endpoint: "(any)".to_owned(), reason }
    }
}

/// Says what helps against an endpoint that cannot be reached.
fn way_there(reason: &str) -> &'static str {
    let reason = reason.to_lowercase();
    if reason.contains("connection refused") {
        "nothing listens there: start the model server, or name another address with --model-url or OPENAI_BASE_URL"
    } else if reason.contains("lookup") || reason.contains("dns") {
        "no such host is known: check the name in --model-url or OPENAI_BASE_URL"
    } else if reason.contains("certificate") {
        "its certificate is not trusted here: check the address in --model-url or OPENAI_BASE_URL, and SSL_CERT_FILE"
    } else {
        "check --model-url or OPENAI_BASE_URL"
    }
}

impl Error {
    /// Says in a few words why a call is made once more.
    pub fn brief(&self) -> String {
        match self {
            Self::Unreachable { endpoint, reason } => {
                format!("no answer from {endpoint} ({reason})")
            }
            Self::Timeout { endpoint, seconds } => {
                format!("no answer from {endpoint} within {seconds} s")
            }
            Self::Refused { endpoint, status, .. } => {
                format!("{endpoint} answered with status {status}")
            }
            Self::Malformed { endpoint, .. } => {
                format!("{endpoint} sent an answer that cannot be read")
            }
            other => other.to_string(),
        }
    }

    /// Returns the class of the error in one word, to count by.
    pub fn class(&self) -> &'static str {
        match self {
            Self::NotConfigured => "not_configured",
            Self::Unreachable { .. } => "unreachable",
            Self::Timeout { .. } => "timeout",
            Self::Refused { status: 429, .. } => "rate_limited",
            Self::Refused { status: 500.., .. } => "server_error",
            Self::Refused { .. } => "refused",
            Self::Malformed { .. } => "malformed",
            Self::Truncated { .. } => "truncated",
            Self::Empty => "empty",
            Self::Invalid { .. } => "invalid",
            Self::Prompt { .. } => "prompt",
            Self::Script(_) => "script",
            Self::Late { .. } => "late",
            Self::Recorded(_) => "recorded",
            Self::Interrupted(_) => "interrupted",
        }
    }
}
