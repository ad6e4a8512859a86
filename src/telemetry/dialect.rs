//! The three dialects in which backends read a span: `gen_ai.*`, `langfuse.*` and `openinference.*`.
//!
//! The conventions for generative AI are still in development, so every name stands here and nowhere else.

use opentelemetry::{Array, KeyValue, StringValue, Value};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{About, Span, Status, ToolCount};
use crate::llm::{ChatMessage, MessageRole, ToolCall};

/// Attribute names.
pub mod names {
    // On every span.
    pub const SESSION: &str = "session.id";
    pub const CONVERSATION: &str = "gen_ai.conversation.id";
    pub const THREAD: &str = "thread.id";
    pub const THREAD_RUN: &str = "thread.run";
    pub const CHECKPOINT: &str = "perihelion.checkpoint.id";
    pub const ERROR_TYPE: &str = "error.type";

    // What people filter by.
    pub const AGENT_NAME: &str = "agent_name";
    pub const REFLECTION_STATUS: &str = "reflection_status";
    pub const TOOL_USAGE: &str = "tool_usage";

    // Of the graph.
    pub const GRAPH_NODE: &str = "graph.node.id";
    pub const FROM: &str = "graph.transition.from";
    pub const TO: &str = "graph.transition.to";
    pub const REASON: &str = "graph.transition.reason";
    pub const CANDIDATES: &str = "graph.transition.candidates";
    pub const STEP: &str = "graph.step";
    pub const THOUGHT: &str = "graph.transition.thought";
    pub const RUN_STATUS: &str = "perihelion.run.status";
    pub const RUNS: &str = "perihelion.runs";
    pub const OPEN: &str = "perihelion.open";
    pub const ATTEMPTS: &str = "perihelion.attempts";
    pub const ROLE: &str = "perihelion.role";
    pub const INPUT_TOKENS: &str = "perihelion.usage.input_tokens";
    pub const OUTPUT_TOKENS: &str = "perihelion.usage.output_tokens";
    pub const IDEMPOTENCY_KEY: &str = "perihelion.idempotency_key";
    pub const INTERRUPT: &str = "perihelion.interrupt.id";
    pub const INTERRUPT_KIND: &str = "perihelion.interrupt.kind";
    pub const REFLECTION_ATTEMPT: &str = "perihelion.reflection.attempt";
    pub const REFLECTION_OF: &str = "perihelion.reflection.of";
    pub const FEEDBACK: &str = "perihelion.reflection.feedback";
    pub const FAILURE: &str = "perihelion.failure";

    // gen_ai.*
    pub const OPERATION: &str = "gen_ai.operation.name";
    pub const WORKFLOW: &str = "gen_ai.workflow.name";
    pub const AGENT: &str = "gen_ai.agent.name";
    pub const PROVIDER: &str = "gen_ai.provider.name";
    pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
    pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
    pub const USAGE_INPUT: &str = "gen_ai.usage.input_tokens";
    pub const USAGE_OUTPUT: &str = "gen_ai.usage.output_tokens";
    pub const TOOL: &str = "gen_ai.tool.name";
    pub const TOOL_TYPE: &str = "gen_ai.tool.type";
    pub const TOOL_CALL: &str = "gen_ai.tool.call.id";
    pub const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
    pub const TOOL_RESULT: &str = "gen_ai.tool.call.result";
    pub const INPUT: &str = "gen_ai.input.messages";
    pub const OUTPUT: &str = "gen_ai.output.messages";
    pub const EVALUATION_EVENT: &str = "gen_ai.evaluation.result";
    pub const EVALUATION: &str = "gen_ai.evaluation.name";
    pub const EVALUATION_LABEL: &str = "gen_ai.evaluation.score.label";
    pub const EVALUATION_WHY: &str = "gen_ai.evaluation.explanation";
    pub const MCP_METHOD: &str = "mcp.method.name";
    pub const MCP_SERVER: &str = "mcp.server.name";

    // langfuse.*
    pub const LF_SESSION: &str = "langfuse.session.id";
    pub const LF_TRACE: &str = "langfuse.trace.name";
    pub const LF_TYPE: &str = "langfuse.observation.type";
    pub const LF_LEVEL: &str = "langfuse.observation.level";
    pub const LF_MESSAGE: &str = "langfuse.observation.status_message";
    pub const LF_MODEL: &str = "langfuse.observation.model.name";
    pub const LF_USAGE: &str = "langfuse.observation.usage_details";
    pub const LF_INPUT: &str = "langfuse.observation.input";
    pub const LF_OUTPUT: &str = "langfuse.observation.output";
    pub const LF_AGENT_NAME: &str = "langfuse.observation.metadata.agent_name";
    pub const LF_REFLECTION: &str = "langfuse.observation.metadata.reflection_status";
    pub const LF_TOOL_USAGE: &str = "langfuse.observation.metadata.tool_usage";
    pub const LF_NODE: &str = "langfuse.observation.metadata.langgraph_node";
    pub const LF_STEP: &str = "langfuse.observation.metadata.langgraph_step";

    // openinference.*
    pub const OI_PROJECT: &str = "openinference.project.name";
    pub const OI_KIND: &str = "openinference.span.kind";
    pub const OI_MODEL: &str = "llm.model_name";
    pub const OI_PROMPT: &str = "llm.token_count.prompt";
    pub const OI_COMPLETION: &str = "llm.token_count.completion";
    pub const OI_TOTAL: &str = "llm.token_count.total";
    pub const OI_AGENT: &str = "agent.name";
    pub const OI_TOOL: &str = "tool.name";
    pub const OI_INPUT: &str = "input.value";
    pub const OI_OUTPUT: &str = "output.value";
    pub const OI_METADATA: &str = "metadata";

    /// Begins the event on a root that tells of a run's going on, with the run's number in [`THREAD_RUN`].
    pub const RESUMED_EVENT: &str = "run.resumed";
    pub const LINK_KIND: &str = "link.kind";
}
use names as n;

/// Bytes of one captured text; the rest is cut off, its digest and length stay.
pub const CONTENT_BYTES: usize = 16 * 1024;

/// The attributes of one span, in all three dialects.
struct Attributes {
    list: Vec<KeyValue>,
    content: bool,
}

/// Writes a span's attributes; what people, models and tools wrote only with `content`, capped.
///
/// At most a few dozen, well below the 128 that SDKs and backends keep.
pub fn attributes(span: &Span, content: bool) -> Vec<KeyValue> {
    let mut out = Attributes { list: Vec::with_capacity(48), content };
    out.everywhere(span);
    match &span.about {
        About::Workflow { .. } => out.workflow(&span.about),
        About::Transition { .. } => out.transition(&span.about),
        About::Chat { .. } => out.chat(&span.about),
        About::Agent { .. } => out.agent(&span.about),
        About::Tool { .. } => out.tool(span),
        About::Reflection { .. } => out.reflection(&span.about),
        About::Question { interrupt, interrupt_kind, .. } => {
            out.observed("span", "CHAIN", "interrupt");
            out.put(n::INTERRUPT, interrupt.clone());
            out.put(n::INTERRUPT_KIND, interrupt_kind.clone());
        }
    }
    out.metadata();
    out.list
}

/// Writes what happened at a moment within a span, for the backends that show it.
pub fn events(
    span: &Span,
    content: bool,
) -> Vec<(&'static str, chrono::DateTime<chrono::Utc>, Vec<KeyValue>)> {
    match &span.about {
        About::Reflection { verdict: Some(verdict), feedback, .. } => {
            let mut list = vec![
                KeyValue::new(n::EVALUATION, "reflection"),
                KeyValue::new(n::EVALUATION_LABEL, verdict.clone()),
            ];
            if let Some(feedback) = feedback.as_ref().filter(|_| content) {
                list.push(KeyValue::new(n::EVALUATION_WHY, cut(feedback)));
            }
            vec![(n::EVALUATION_EVENT, span.end, list)]
        }
        About::Workflow { runs, .. } => runs
            .iter()
            .skip(1)
            .map(|run| {
                let number = KeyValue::new(n::THREAD_RUN, i64::from(run.number));
                (n::RESUMED_EVENT, run.started_at, vec![number])
            })
            .collect(),
        _ => Vec::new(),
    }
}

impl Attributes {
    fn put(&mut self, name: &'static str, value: impl Into<Value>) {
        self.list.push(KeyValue::new(name, value));
    }

    fn list(&mut self, name: &'static str, values: &[String]) {
        let values: Vec<StringValue> = values.iter().map(|value| value.clone().into()).collect();
        self.put(name, Value::Array(Array::String(values)));
    }

    /// Writes a text that somebody else wrote, under each of the names, if that is wanted.
    fn content(&mut self, names: &[&'static str], text: Option<&str>) {
        let Some(text) = text.filter(|_| self.content) else { return };
        for name in names {
            self.put(name, cut(text));
        }
        if let Some(name) = names.first() {
            let digest: String =
                Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            self.list.push(KeyValue::new(format!("{name}.sha256"), digest));
            self.list.push(KeyValue::new(format!("{name}.bytes"), count(text.len())));
        }
    }

    fn everywhere(&mut self, span: &Span) {
        let thread = span.thread.to_string();
        for name in [n::SESSION, n::CONVERSATION, n::THREAD, n::LF_SESSION] {
            self.put(name, thread.clone());
        }
        self.put(n::THREAD_RUN, i64::from(span.run));
        self.put(n::CHECKPOINT, format!("{thread}:{}", span.step));
        let step = i64::try_from(span.step).unwrap_or(i64::MAX);
        if let Some(node) = &span.node {
            self.put(n::GRAPH_NODE, node.clone());
            self.put(n::STEP, step);
            self.put(n::LF_NODE, node.clone());
            self.put(n::LF_STEP, step);
        }
        if span.open {
            self.put(n::OPEN, true);
        }
        if let Status::Error { message } = &span.status {
            let class = match &span.about {
                About::Tool { .. } => "tool_error",
                About::Chat { .. } => "model_error",
                About::Agent { .. } => "agent_error",
                _ => "run_error",
            };
            self.put(n::ERROR_TYPE, class);
            self.put(n::LF_LEVEL, "ERROR");
            self.put(n::LF_MESSAGE, message.clone());
        }
    }

    /// Says what kind of thing it is in each dialect.
    fn observed(
        &mut self,
        langfuse: &'static str,
        openinference: &'static str,
        operation: &'static str,
    ) {
        self.put(n::LF_TYPE, langfuse);
        self.put(n::OI_KIND, openinference);
        self.put(n::OPERATION, operation);
    }

    fn named(&mut self, agent: &str) {
        for name in [n::AGENT_NAME, n::AGENT, n::LF_AGENT_NAME, n::OI_AGENT] {
            self.put(name, agent.to_owned());
        }
    }

    fn used(&mut self, tools: &[ToolCount]) {
        if tools.is_empty() {
            return;
        }
        let words: Vec<String> =
            tools.iter().map(|one| format!("{}:{}", one.tool, one.calls)).collect();
        self.put(n::TOOL_USAGE, words.join(", "));
        self.put(n::LF_TOOL_USAGE, words.join(", "));
    }

    fn judged(&mut self, verdict: Option<&String>) {
        if let Some(verdict) = verdict {
            self.put(n::REFLECTION_STATUS, verdict.clone());
            self.put(n::LF_REFLECTION, verdict.clone());
        }
    }

    fn workflow(&mut self, about: &About) {
        let About::Workflow { graph, runs, usage, tools, question, answer } = about else { return };
        self.observed("chain", "CHAIN", "invoke_workflow");
        self.put(n::WORKFLOW, graph.clone());
        self.put(n::LF_TRACE, graph.clone());
        self.used(tools);
        let status = |run: &super::RunMark| run.status.as_str();
        if let Some(last) = runs.last() {
            self.put(n::RUN_STATUS, status(last));
        }
        let runs: Vec<String> =
            runs.iter().map(|run| format!("{}:{}", run.number, status(run))).collect();
        self.list(n::RUNS, &runs);
        self.put(n::INPUT_TOKENS, count(usage.input_tokens));
        self.put(n::OUTPUT_TOKENS, count(usage.output_tokens));
        self.content(&[n::OI_INPUT, n::LF_INPUT], question.as_deref());
        self.content(&[n::OI_OUTPUT, n::LF_OUTPUT], answer.as_deref());
    }

    fn transition(&mut self, about: &About) {
        let About::Transition { from, to, reason, candidates, thought } = about else { return };
        self.observed("chain", "CHAIN", "plan");
        self.named(from);
        self.put(n::FROM, from.clone());
        self.list(n::TO, to);
        self.put(n::REASON, reason.as_str());
        if !candidates.is_empty() {
            self.list(n::CANDIDATES, candidates);
        }
        self.content(&[n::THOUGHT, n::LF_OUTPUT, n::OI_OUTPUT], thought.as_deref());
    }

    fn chat(&mut self, about: &About) {
        let About::Chat {
            role,
            agent,
            model,
            usage,
            finish_reason,
            attempts,
            input,
            output,
            calls,
        } = about
        else {
            return;
        };
        self.observed("generation", "LLM", "chat");
        self.named(agent.as_deref().unwrap_or(role));
        self.put(n::ROLE, role.clone());
        self.put(n::PROVIDER, "openai");
        self.put(n::ATTEMPTS, i64::from(*attempts));
        if let Some(model) = model {
            for name in [n::RESPONSE_MODEL, n::LF_MODEL, n::OI_MODEL] {
                self.put(name, model.clone());
            }
        }
        if let Some(reason) = finish_reason {
            self.list(n::FINISH_REASONS, std::slice::from_ref(reason));
        }
        let (input_tokens, output_tokens) = (count(usage.input_tokens), count(usage.output_tokens));
        self.put(n::USAGE_INPUT, input_tokens);
        self.put(n::USAGE_OUTPUT, output_tokens);
        self.put(n::OI_PROMPT, input_tokens);
        self.put(n::OI_COMPLETION, output_tokens);
        self.put(n::OI_TOTAL, input_tokens.saturating_add(output_tokens));
        let details = json!({ "input": input_tokens, "output": output_tokens });
        self.put(n::LF_USAGE, details.to_string());
        let sent = input.as_ref().map(|messages| sent(messages));
        self.content(&[n::INPUT, n::LF_INPUT, n::OI_INPUT], sent.as_deref());
        let said = output.as_ref().map(|text| said(text, calls, finish_reason.as_deref()));
        self.content(&[n::OUTPUT, n::LF_OUTPUT, n::OI_OUTPUT], said.as_deref());
    }

    fn agent(&mut self, about: &About) {
        let About::Agent { agent, reflection_status, attempts, usage, tools, task, output, error } =
            about
        else {
            return;
        };
        self.observed("agent", "AGENT", "invoke_agent");
        self.named(agent);
        self.judged(reflection_status.as_ref());
        self.used(tools);
        if let Some(attempts) = attempts {
            self.put(n::ATTEMPTS, i64::from(*attempts));
        }
        // Under names of our own: backends add up the tokens of every span that has theirs.
        self.put(n::INPUT_TOKENS, count(usage.input_tokens));
        self.put(n::OUTPUT_TOKENS, count(usage.output_tokens));
        self.content(&[n::OI_INPUT, n::LF_INPUT], task.as_deref());
        self.content(&[n::OI_OUTPUT, n::LF_OUTPUT], output.as_deref());
        self.content(&[n::FAILURE], error.as_deref());
    }

    fn tool(&mut self, span: &Span) {
        let About::Tool {
            agent,
            server,
            tool,
            call_id,
            idempotency_key,
            attempts,
            arguments,
            result,
        } = &span.about
        else {
            return;
        };
        self.observed("tool", "TOOL", "execute_tool");
        self.named(agent);
        if *attempts > 0 || self.content {
            self.put(n::TOOL, tool.clone());
            self.put(n::OI_TOOL, tool.clone());
        }
        self.put(n::TOOL_TYPE, "extension");
        self.put(n::ATTEMPTS, i64::from(*attempts));
        if !server.is_empty() {
            let usage = format!("{server}.{tool}");
            self.put(n::TOOL_USAGE, usage.clone());
            self.put(n::LF_TOOL_USAGE, usage);
            self.put(n::MCP_METHOD, "tools/call");
            self.put(n::MCP_SERVER, server.clone());
        }
        if let Some(call) = call_id {
            self.put(n::TOOL_CALL, call.clone());
        }
        if let Some(key) = idempotency_key {
            self.put(n::IDEMPOTENCY_KEY, key.clone());
        }
        self.content(&[n::TOOL_ARGUMENTS, n::LF_INPUT, n::OI_INPUT], arguments.as_deref());
        self.content(&[n::TOOL_RESULT, n::LF_OUTPUT, n::OI_OUTPUT], result.as_deref());
    }

    fn reflection(&mut self, about: &About) {
        let About::Reflection { agent, verdict, attempt, of, feedback } = about else { return };
        self.observed("evaluator", "EVALUATOR", "reflect");
        self.named(agent);
        self.judged(verdict.as_ref());
        self.put(n::REFLECTION_ATTEMPT, i64::from(*attempt));
        if let Some(of) = of {
            self.put(n::REFLECTION_OF, i64::from(*of));
        }
        self.content(&[n::FEEDBACK, n::LF_OUTPUT, n::OI_OUTPUT], feedback.as_deref());
    }

    /// Repeats what people filter by in the one attribute that OpenInference keeps for it.
    fn metadata(&mut self) {
        let mut map = serde_json::Map::new();
        for name in [n::AGENT_NAME, n::REFLECTION_STATUS, n::TOOL_USAGE, n::CHECKPOINT] {
            if let Some(one) = self.list.iter().find(|one| one.key.as_str() == name) {
                map.insert(name.to_owned(), json!(one.value.as_str()));
            }
        }
        self.put(n::OI_METADATA, serde_json::Value::Object(map).to_string());
    }
}

fn count(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Cuts a text at the cap, between characters.
fn cut(text: &str) -> String {
    if text.len() <= CONTENT_BYTES {
        return text.to_owned();
    }
    let end = (0..=CONTENT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// Writes messages in the form of the conventions.
fn sent(messages: &[ChatMessage]) -> String {
    let one = |message: &ChatMessage| {
        let role = match message.role {
            MessageRole::System => "system",
            MessageRole::User => "user",
            MessageRole::Assistant => "assistant",
            MessageRole::Tool => "tool",
        };
        let mut parts = match (&message.tool_call_id, message.content.is_empty()) {
            (Some(id), _) => {
                vec![json!({ "type": "tool_call_response", "id": id, "response": message.content })]
            }
            (None, true) => Vec::new(),
            (None, false) => vec![json!({ "type": "text", "content": message.content })],
        };
        parts.extend(message.tool_calls.iter().map(call));
        json!({ "role": role, "parts": parts })
    };
    json!(messages.iter().map(one).collect::<Vec<_>>()).to_string()
}

fn said(text: &str, calls: &[ToolCall], finish_reason: Option<&str>) -> String {
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(json!({ "type": "text", "content": text }));
    }
    parts.extend(calls.iter().map(call));
    json!([{ "role": "assistant", "parts": parts, "finish_reason": finish_reason }]).to_string()
}

fn call(call: &ToolCall) -> serde_json::Value {
    json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments })
}
