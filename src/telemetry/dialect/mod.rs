//! The three dialects in which backends read a span: `gen_ai.*`, `langfuse.*` and `openinference.*`.
//!
//! The conventions for generative AI are still in development, so every name stands here and nowhere else.

use opentelemetry::{Array, KeyValue, StringValue, Value};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use self::text::{cut, said, sent};
use super::{About, Labels, Span, Status, ToolCount};

pub mod names;
mod text;

use names as n;
pub use text::CONTENT_BYTES;

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
    out.cost(span);
    out.metadata();
    out.list
}

/// Writes the labels of a trace, which belong on each of its spans.
pub fn labels(labels: &Labels) -> Vec<KeyValue> {
    let mut out = Attributes { list: Vec::new(), content: false };
    if let Some(user) = &labels.user {
        out.put(n::USER, user.clone());
        out.put(n::LF_USER, user.clone());
    }
    if let Some(environment) = &labels.environment {
        out.put(n::ENVIRONMENT, environment.clone());
        out.put(n::LF_ENVIRONMENT, environment.clone());
    }
    if !labels.tags.is_empty() {
        out.list(n::LF_TAGS, &labels.tags);
        out.list(n::OI_TAGS, &labels.tags);
    }
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
        self.put(n::CHECKPOINT, format!("{}:{}", span.checkpoint_thread(), span.step));
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
        let About::Workflow { graph, runs, usage, tools, question, answer, .. } = about else {
            return;
        };
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
        self.content(&[n::OI_INPUT, n::LF_INPUT, n::LF_TRACE_INPUT], question.as_deref());
        self.content(&[n::OI_OUTPUT, n::LF_OUTPUT, n::LF_TRACE_OUTPUT], answer.as_deref());
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

    /// Says in US dollars what a span cost, where prices are set.
    fn cost(&mut self, span: &Span) {
        let Some(nano_usd) = span.spent.and_then(|spent| spent.nano_usd) else { return };
        let usd = nano_usd as f64 / 1e9;
        if let About::Chat { .. } = span.about {
            self.put(n::USAGE_COST, usd);
            self.put(n::OI_COST, usd);
            self.put(n::LF_COST, json!({ "total": usd }).to_string());
        } else {
            // As with tokens: what is rolled up stands under a name that no backend adds up once more.
            self.put(n::COST, usd);
        }
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
            via,
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
        if let Some(via) = via {
            self.put(n::MCP_VERSION, via.protocol_version.clone());
            self.put(n::TRANSPORT, via.transport.clone());
            self.put(n::RPC_REQUEST, via.request_id.clone());
            if let Some(session) = &via.session_id {
                self.put(n::MCP_SESSION, session.clone());
            }
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
