//! The script: rules that assign replies to requests; plain data, with short constructors.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::choose::RecordedRequest;
use crate::{Role, Usage};

/// Answers requests in place of rules; `None` leaves the request to the rules.
pub(super) type Responder = Arc<dyn Fn(&RecordedRequest) -> Option<Reply> + Send + Sync>;

/// The rules of a scripted model: the first rule that matches a request gives the reply.
#[derive(Clone, Default)]
pub struct Script {
    pub rules: Vec<Rule>,
    pub(super) responder: Option<Responder>,
    pub(super) keep: Option<usize>,
}

impl Script {
    /// Makes a script without rules.
    pub fn new() -> Self {
        Self::default()
    }

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

/// When a reply is given; an absent condition is met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// `x-perihelion-role` of the request.
    pub role: Option<Role>,
    /// `x-perihelion-agent` of the request.
    pub agent: Option<String>,
    /// `x-perihelion-stage` of the request.
    pub stage: Option<String>,
    /// Texts that a message contains. Prompts escape dynamic text: `<` becomes `&lt;` there.
    pub contains: Vec<String>,
    pub last_contains: Vec<String>,
    pub not_contains: Vec<String>,
    /// Number of tool messages in the request.
    pub after_tool_results: Option<usize>,
    /// `response_format.type` of the request.
    pub response_format: Option<String>,
    /// Which call of this role and agent on this thread it is, from 1; counted by this server.
    pub nth: Option<u64>,
    /// How often the rule may be used; counted by this server.
    pub times: Option<u64>,
    pub reply: Reply,
}

impl Rule {
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

    pub fn stage(mut self, stage: impl Into<String>) -> Self {
        self.stage = Some(stage.into());
        self
    }

    /// Requires a text in some message; repeatable.
    pub fn contains(mut self, text: impl Into<String>) -> Self {
        self.contains.push(text.into());
        self
    }

    /// Requires a text in the last message; repeatable.
    pub fn last_contains(mut self, text: impl Into<String>) -> Self {
        self.last_contains.push(text.into());
        self
    }

    /// Excludes a text in any message; repeatable.
    pub fn not_contains(mut self, text: impl Into<String>) -> Self {
        self.not_contains.push(text.into());
        self
    }

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

#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedCall {
    pub name: String,
    pub arguments: Value,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The answer: a string as it is, any other value as its JSON text.
    pub content: Option<Value>,
    pub tool_calls: Vec<ScriptedCall>,
    /// HTTP status; from 400 on the content is the error's message.
    pub status: Option<u16>,
    pub headers: BTreeMap<String, String>,
    /// A body that is sent as it is, in place of a completion.
    pub raw: Option<String>,
    /// Milliseconds before the answer begins.
    pub delay_ms: u64,
    /// Never answers; the connection stays open until the server stops.
    pub hang: bool,
    /// Breaks the connection: at once, or during the content if there is some.
    pub drop_connection: bool,
    /// Answers with a whole completion even if a stream was requested.
    pub ignore_stream: bool,
    pub without_usage: bool,
    /// Token counts; by default about a quarter of the characters.
    pub usage: Option<Usage>,
}

impl Reply {
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

    pub fn status(status: u16, message: impl Into<String>) -> Self {
        Self { status: Some(status), ..Self::text(message) }
    }

    /// Answers with any body, not only a completion.
    pub fn raw(body: impl Into<String>) -> Self {
        Self { raw: Some(body.into()), ..Self::default() }
    }

    pub fn hang() -> Self {
        Self { hang: true, ..Self::default() }
    }

    pub fn drop_connection() -> Self {
        Self { drop_connection: true, ..Self::default() }
    }

    pub fn and_call(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.tool_calls.push(ScriptedCall { name: name.into(), arguments });
        self
    }

    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    pub fn usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage = Some(Usage { input_tokens, output_tokens, ..Usage::default() });
        self
    }

    /// Sets the number of cached input tokens, if token counts are set.
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
