//! The script: rules that say which request gets which reply; plain data, with short ways to write it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choose::RecordedRequest;
use crate::{Error, Role, Usage};
use perihelion_settings::config::strict;

/// Answers requests in place of rules; `None` leaves the request to the rules.
pub(super) type Responder = Arc<dyn Fn(&RecordedRequest) -> Option<Reply> + Send + Sync>;

/// What a scripted model says: the first rule that matches a request gives the reply.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    #[serde(default)]
    pub rules: Vec<Rule>,
    #[serde(skip)]
    pub(super) responder: Option<Responder>,
    #[serde(skip)]
    pub(super) keep: Option<usize>,
}

impl Script {
    /// Makes a script without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a script from TOML; `path` only names it in errors.
    ///
    /// # Errors
    /// [`Error::Script`] with line, column and the nearest valid key.
    pub fn from_toml(path: &Path, text: &str) -> Result<Self, Error> {
        strict::parse(path, text).map_err(|error| Error::Script(error.to_string()))
    }

    /// Appends a rule.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Keeps the newest `count` requests at most; without this, all of them.
    pub fn keep_requests(mut self, count: usize) -> Self {
        self.keep = Some(count);
        self
    }

    /// Asks a function before the rules.
    pub fn respond_with(
        mut self,
        responder: impl Fn(&RecordedRequest) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        self.responder = Some(Arc::new(responder));
        self
    }
}

/// One text, or several that must all hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TextOrTexts {
    One(String),
    All(Vec<String>),
}

impl TextOrTexts {
    /// Iterates over the texts.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        match self {
            Self::One(text) => std::slice::from_ref(text).iter(),
            Self::All(texts) => texts.iter(),
        }
        .map(String::as_str)
    }

    fn push(slot: &mut Option<Self>, text: String) {
        *slot = Some(match slot.take() {
            None => Self::One(text),
            Some(Self::One(first)) => Self::All(vec![first, text]),
            Some(Self::All(mut texts)) => {
                texts.push(text);
                Self::All(texts)
            }
        });
    }
}

/// When a reply is given; a condition that is absent holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// `x-perihelion-role` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// `x-perihelion-agent` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// `x-perihelion-stage` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Texts that stand in some message. Prompts escape what is dynamic: `<` reads `&lt;` there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<TextOrTexts>,
    /// Texts that stand in the last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_contains: Option<TextOrTexts>,
    /// Texts of which none stands in any message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_contains: Option<TextOrTexts>,
    /// Number of tool messages in the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_tool_results: Option<usize>,
    /// `response_format.type` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<String>,
    /// Which call of this role and agent on this thread it is, from 1; counted by this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// How often the rule may be used; counted by this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    pub reply: Reply,
}

impl Rule {
    /// Makes a rule that gives `reply` to every request.
    pub fn new(reply: Reply) -> Self {
        Self { reply, ..Self::default() }
    }

    pub fn role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Restricts the rule to a stage of a pipeline.
    pub fn stage(mut self, stage: impl Into<String>) -> Self {
        self.stage = Some(stage.into());
        self
    }

    /// Demands a text in some message; may be said several times.
    pub fn contains(mut self, text: impl Into<String>) -> Self {
        TextOrTexts::push(&mut self.contains, text.into());
        self
    }

    /// Demands a text in the last message; may be said several times.
    pub fn last_contains(mut self, text: impl Into<String>) -> Self {
        TextOrTexts::push(&mut self.last_contains, text.into());
        self
    }

    /// Refuses a text in any message; may be said several times.
    pub fn not_contains(mut self, text: impl Into<String>) -> Self {
        TextOrTexts::push(&mut self.not_contains, text.into());
        self
    }

    /// Demands a number of tool results in the request.
    pub fn after_tool_results(mut self, count: usize) -> Self {
        self.after_tool_results = Some(count);
        self
    }

    /// Demands a `response_format`, such as `json_schema`.
    pub fn response_format(mut self, kind: impl Into<String>) -> Self {
        self.response_format = Some(kind.into());
        self
    }

    /// Demands that it is the `nth` call, from 1, of this role and agent on its thread.
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = Some(nth);
        self
    }

    /// Lets the rule be used at most so often.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }
}

/// A tool call in a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    pub name: String,
    #[serde(default)]
    pub arguments: Value,
}

/// What a request gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// The answer: a string as it is, any other value as its JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ScriptedCall>,
    /// HTTP status; from 400 on the content is the error's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A body that is sent as it is, in place of a completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Milliseconds before the answer begins.
    pub delay_ms: u64,
    /// Never answers; the connection stays open until the server stops.
    pub hang: bool,
    /// Breaks the connection: at once, or during the content where there is some.
    pub drop_connection: bool,
    /// Answers with a whole completion also where a stream was asked for.
    pub ignore_stream: bool,
    /// Leaves the token counts out.
    pub without_usage: bool,
    /// Token counts; by default about a quarter of the characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Reply {
    /// Answers with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: Some(Value::String(text.into())), ..Self::default() }
    }

    pub fn json(value: Value) -> Self {
        Self { content: Some(value), ..Self::default() }
    }

    /// Answers with a call of a tool; more calls follow with [`Reply::and_call`].
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::default().and_call(name, arguments)
    }

    /// Answers with an error status.
    pub fn status(status: u16, message: impl Into<String>) -> Self {
        Self { status: Some(status), ..Self::text(message) }
    }

    /// Answers with a body that need not be a completion.
    pub fn raw(body: impl Into<String>) -> Self {
        Self { raw: Some(body.into()), ..Self::default() }
    }

    /// Never answers.
    pub fn hang() -> Self {
        Self { hang: true, ..Self::default() }
    }

    /// Breaks the connection.
    pub fn drop_connection() -> Self {
        Self { drop_connection: true, ..Self::default() }
    }

    /// Adds a call of a tool.
    pub fn and_call(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.tool_calls.push(ScriptedCall { name: name.into(), arguments });
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets the token counts.
    pub fn usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage = Some(Usage { input_tokens, output_tokens, cached_tokens: 0 });
        self
    }

    /// Says how many of the input's tokens were kept from an earlier request, where token counts are set.
    pub fn cached(mut self, cached_tokens: u64) -> Self {
        if let Some(usage) = &mut self.usage {
            usage.cached_tokens = cached_tokens;
        }
        self
    }

    /// Waits before the answer begins.
    pub fn delay_ms(mut self, delay_ms: u64) -> Self {
        self.delay_ms = delay_ms;
        self
    }
}
