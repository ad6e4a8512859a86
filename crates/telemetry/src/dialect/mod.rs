//! The three dialects in which backends read a span: `gen_ai.*`, `langfuse.*` and `openinference.*`.
//!
//! The conventions for generative AI are still in development, so this module contains every name.

use opentelemetry::{Array, KeyValue, StringValue, Value};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use self::text::{cut, fitted};
use super::ids::hex;
use super::{About, Span, Status, ToolCount};
use perihelion_star::{GRAPH, SpanKind, span_kind};

mod kinds;
pub mod names;
mod text;

use names as n;
pub use text::CONTENT_BYTES;

const JUDGED: [&str; 2] = [n::REFLECTION_STATUS, n::LF_REFLECTION];

const USED: [&str; 2] = [n::TOOL_USAGE, n::LF_TOOL_USAGE];

struct Attributes {
    list: Vec<KeyValue>,
    content: bool,
}

/// Writes a span's attributes; texts of people, models and tools only with `content`, and cut.
///
/// At most a few dozen, well below the 128 that SDKs and backends keep.
pub fn attributes(span: &Span, content: bool) -> Vec<KeyValue> {
    let mut out = Attributes { list: Vec::with_capacity(48), content };
    out.everywhere(span);
    out.of_kind(&span.about);
    out.cost(span);
    out.metadata();
    out.list
}

/// Writes what belongs on each span of a trace, as its root says: its name and its labels.
pub fn labels(root: Option<&Span>) -> Vec<KeyValue> {
    let Some(About::Workflow { graph, labels, .. }) = root.map(|root| &root.about) else {
        return Vec::new();
    };
    let mut out = Attributes { list: Vec::new(), content: false };
    out.put(n::LF_TRACE, graph.clone());
    out.put_each(&[n::USER, n::LF_USER], labels.user.as_ref());
    out.put_each(&[n::ENVIRONMENT, n::LF_ENVIRONMENT], labels.environment.as_ref());
    if !labels.tags.is_empty() {
        out.list(&[n::LF_TAGS, n::OI_TAGS], &labels.tags);
    }
    out.list
}

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

    fn put_some(&mut self, name: &'static str, value: Option<impl Into<Value>>) {
        self.list.extend(value.map(|value| KeyValue::new(name, value)));
    }

    /// Writes a value, if there is one, under each of the names.
    fn put_each<V: Clone + Into<Value>>(&mut self, names: &[&'static str], value: Option<&V>) {
        let Some(value) = value else { return };
        for name in names {
            self.put(name, value.clone());
        }
    }

    fn list(&mut self, names: &[&'static str], values: &[String]) {
        let values: Vec<StringValue> = values.iter().map(|value| value.clone().into()).collect();
        self.put_each(names, Some(&Value::Array(Array::String(values))));
    }

    /// Writes a captured text under each of the names, if content is on.
    fn content(&mut self, names: &[&'static str], text: Option<&String>) {
        let Some(text) = text.filter(|_| self.content) else { return };
        self.put_each(names, Some(&cut(text)));
        self.digest(names, text);
    }

    /// Writes captured messages under each of the names, if content is on.
    fn messages(&mut self, names: &[&'static str], write: impl Fn(usize) -> String) {
        if self.content {
            self.put_each(names, Some(&fitted(&write)));
            self.digest(names, &write(usize::MAX));
        }
    }

    /// Writes the same messages once more in the form of Chat Completions, if that is wanted.
    fn in_chat(&mut self, name: &'static str, write: impl Fn(usize) -> String) {
        if self.content {
            self.put(name, fitted(write));
        }
    }

    fn digest(&mut self, names: &[&'static str], text: &str) {
        if let Some(name) = names.first() {
            let digest = hex(&Sha256::digest(text.as_bytes()));
            self.list.push(KeyValue::new(format!("{name}.sha256"), digest));
            self.list.push(KeyValue::new(format!("{name}.bytes"), count(text.len())));
        }
    }

    fn everywhere(&mut self, span: &Span) {
        let of_thread = [n::SESSION, n::CONVERSATION, n::THREAD, n::LF_SESSION];
        self.put_each(&of_thread, Some(&span.thread.to_string()));
        self.put(n::THREAD_RUN, i64::from(span.run));
        self.put(n::CHECKPOINT, format!("{}:{}", span.checkpoint_thread(), span.step));
        let step = i64::try_from(span.step).unwrap_or(i64::MAX);
        if let Some(node) = &span.node {
            self.put(n::GRAPH_NODE, node.clone());
            self.put(n::STEP, step);
            // One span for each turn of a node: what it is, is what the graph view draws the node as.
            if stands_for_node(&span.about) {
                self.put(n::LF_NODE, node.clone());
                self.put(n::LF_STEP, step);
            }
        }
        if span.open {
            self.put(n::OPEN, true);
        }
        if let Status::Error { message } = &span.status {
            let class = match &span.about {
                About::Tool { .. } => "tool_error",
                About::Chat { .. } => "model_error",
                About::Agent { .. } | About::Stage { .. } => "agent_error",
                _ => "run_error",
            };
            self.put(n::ERROR_TYPE, class);
            self.put(n::LF_LEVEL, "ERROR");
            self.put(n::LF_MESSAGE, message.clone());
        }
    }

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
        let names = [n::AGENT_NAME, n::AGENT, n::LF_AGENT_NAME, n::OI_AGENT];
        self.put_each(&names, Some(&agent.to_owned()));
    }

    fn used(&mut self, tools: &[ToolCount]) {
        if tools.is_empty() {
            return;
        }
        let words: Vec<String> =
            tools.iter().map(|one| format!("{}:{}", one.tool, one.calls)).collect();
        self.put_each(&USED, Some(&words.join(", ")));
    }

    /// Writes the cost of a span in US dollars, if prices are set.
    fn cost(&mut self, span: &Span) {
        let Some(nano_usd) = span.spent.and_then(|spent| spent.nano_usd) else { return };
        let usd = nano_usd as f64 / 1e9;
        if let About::Chat { .. } = span.about {
            self.put_each(&[n::USAGE_COST, n::OI_COST], Some(&usd));
            self.put(n::LF_COST, json!({ "total": usd }).to_string());
        } else {
            // As with tokens: a sum has a name of its own, so that no backend adds it up once more.
            self.put(n::COST, usd);
        }
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

/// Distinguishes the span of a node's turn from the spans within it, and from the route after it.
fn stands_for_node(about: &About) -> bool {
    match about {
        About::Agent { .. } | About::Stage { .. } => true,
        About::Transition { from, .. } => span_kind(GRAPH, from) == SpanKind::Transition,
        _ => false,
    }
}

fn count(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
