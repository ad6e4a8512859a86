//! The events of a thread's runs as events of the protocol.
//!
//! Every form of a log event has a fixed position, for any requested channels.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};

use super::super::wire::{self, Asked};
use super::tools::ToolCalls;
use perihelion_engine::graph::Interrupt;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{HostedEvent, InterruptView};
use perihelion_service::kept::{Run, RunStatus};
use perihelion_service::{Checkpoint, LoggedChange, ThreadChange};

/// Places of one event of the log: two for each task of a step, and more. The numbers of clients, which are exact up to
/// 2^53, have room for billions of events.
pub(super) const PLACES: u64 = 1 << 20;

/// The place after what ends of messages take.
const AFTER_MESSAGES: u64 = 1 << 18;

/// The methods of events that a hosted graph sends itself.
const HOSTED: [&str; 6] = ["values", "updates", "custom", "tasks", "debug", "checkpoints"];

/// Places at the last event of a run, and at the one before its first.
const ENDS: u64 = PLACES - 24;
const BEGINS: u64 = PLACES - 14;
const ANSWERED: u64 = PLACES - 13;
const GONE: u64 = PLACES - 12;
const ENDS_SILENT: u64 = PLACES - 11;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "event")]
pub(super) struct Event {
    #[serde(rename = "event_id")]
    pub id: String,
    pub seq: u64,
    pub method: &'static str,
    pub params: Params,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Params {
    pub namespace: Vec<String>,
    #[serde(with = "chrono::serde::ts_milliseconds")]
    pub timestamp: DateTime<Utc>,
    pub data: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum MessageEvent<'a> {
    MessageStart { role: &'static str, id: &'a str, metadata: OfRun },
    ContentBlockStart { index: u32, content: Text<'a> },
    ContentBlockDelta { index: u32, delta: Text<'a> },
    ContentBlockFinish { index: u32, content: Text<'a> },
    MessageFinish { id: &'a str },
}

#[derive(Serialize)]
struct OfRun {
    run_id: uuid::Uuid,
    thread_id: uuid::Uuid,
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Text<'a> {
    #[serde(rename = "text")]
    Whole { text: &'a str },
    #[serde(rename = "text-delta")]
    Delta { text: &'a str },
}

#[derive(Serialize)]
struct Lifecycle<'a> {
    event: &'static str,
    graph_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> Lifecycle<'a> {
    fn new(run: &'a Run, event: &'static str) -> Self {
        Self { event, graph_name: wire::graph_of(run), error: None }
    }
}

/// A message that is being written.
struct Open {
    id: String,
    text: String,
}

pub(super) struct Shown {
    run: Run,
    /// Its answers to open questions; null without any.
    resume: Value,
    /// The newest time that is known of it.
    at: DateTime<Utc>,
    messages: BTreeMap<(u64, u32), Open>,
    tools: ToolCalls,
    asked: Vec<String>,
    has_heard: bool,
}

/// Puts events of one event of the log into their places.
struct Put<'a> {
    event: u64,
    place: u64,
    at: DateTime<Utc>,
    namespace: Vec<String>,
    to: &'a mut Vec<Event>,
}

impl Put<'_> {
    fn put(&mut self, method: &'static str, node: Option<&str>, data: impl Serialize) {
        let seq = self.event * PLACES + self.place;
        let id = format!("{}-{}", self.event, self.place);
        let params = Params {
            namespace: self.namespace.clone(),
            timestamp: self.at,
            data: json!(data),
            node: node.map(str::to_owned),
        };
        self.to.push(Event { id, seq, method, params });
        self.place += 1;
    }

    /// Shows a node's payload, and the tool call that it reports.
    fn custom(&mut self, tools: &mut ToolCalls, node: Option<&str>, payload: &Value) {
        self.put("custom", None, json!({ "payload": payload }));
        for event in tools.read(self.event, payload) {
            self.put("tools", node, event);
        }
    }
}

impl Shown {
    pub(super) fn new(run: Run) -> Self {
        let at = run.created_at;
        let resume = Asked::of(&run).resume();
        let tools = ToolCalls::of(run.id);
        Self {
            run,
            resume,
            at,
            tools,
            messages: BTreeMap::new(),
            asked: Vec::new(),
            has_heard: false,
        }
    }

    pub(super) fn has_heard(&self) -> bool {
        self.has_heard
    }

    pub(super) fn into_asked(self) -> Vec<String> {
        self.asked
    }

    fn of_run(&self, seq: u64, word: &str, method: &'static str, data: impl Serialize) -> Event {
        let params =
            Params { namespace: Vec::new(), timestamp: self.at, data: json!(data), node: None };
        Event { id: format!("{}:{word}", self.run.id), seq, method, params }
    }

    /// Shows that it has begun; `asked` are the questions that were open before it.
    pub(super) fn begun(&self, asked: &[String]) -> Vec<Event> {
        let first = self.run.first_event.unwrap_or_default() * PLACES;
        let running = Lifecycle::new(&self.run, "running");
        let mut events = vec![self.of_run(first + BEGINS, "running", "lifecycle", running)];
        if self.answers() && !asked.is_empty() {
            let named: Vec<&String> =
                asked.iter().filter(|id| self.resume.get(id.as_str()).is_some()).collect();
            let ids = if named.is_empty() { asked.iter().collect() } else { named };
            let data = json!({ "interrupt_ids": ids });
            events.push(self.of_run(first + ANSWERED, "answered", "input.answered", data));
        }
        events
    }

    /// Returns whether it answers questions that were open before it.
    pub(super) fn answers(&self) -> bool {
        !self.resume.is_null()
    }

    /// Shows that it has ended, after the last event of it in the log.
    pub(super) fn ended(&mut self, run: &Run, values: Option<Value>) -> Vec<Event> {
        let last = last_seq(run);
        self.at = run.updated_at;
        let mut events = Vec::new();
        if let Some(values) = values {
            events.push(self.of_run(last - 1, "values", "values", values));
        }
        let why = || run.error.as_ref().and_then(|why| why["message"].as_str());
        let end = match run.status {
            RunStatus::Success if !self.asked.is_empty() => Lifecycle::new(run, "interrupted"),
            RunStatus::Success => Lifecycle::new(run, "completed"),
            RunStatus::Error | RunStatus::Timeout => {
                let error = Some(why().unwrap_or("the run failed"));
                Lifecycle { error, ..Lifecycle::new(run, "failed") }
            }
            // It was stopped, and has no open question.
            _ => Lifecycle::new(run, "interrupted"),
        };
        events.push(self.of_run(last, "ended", "lifecycle", end));
        events
    }

    /// Returns whether a run that has ended has no event after one of its thread's, by its `seq`.
    pub(super) fn is_past(run: &Run, seq: u64) -> bool {
        run.status.is_terminal() && last_seq(run) <= seq
    }

    pub(super) fn gone(&self) -> Event {
        let first = self.run.first_event.unwrap_or_default() * PLACES;
        self.of_run(first + GONE, "gone", "lifecycle", Lifecycle::new(&self.run, "interrupted"))
    }

    pub(super) fn of(&mut self, heard: &LoggedChange) -> Vec<Event> {
        let mut events = Vec::new();
        self.has_heard = true;
        let thread = ThreadId(self.run.thread);
        self.at = heard.at;
        let mut put = Put {
            event: heard.id,
            place: AFTER_MESSAGES,
            at: self.at,
            namespace: Vec::new(),
            to: &mut events,
        };
        match &heard.change {
            ThreadChange::ContinuesFrom { state } => {
                self.tools.begin_again();
                put.put("values", None, wire::Values(state));
            }
            ThreadChange::TaskStarted { step, task, node, state } => {
                let id = wire::task_id(thread, *step, *task);
                let input = wire::Values(state);
                let data = json!({ "id": id, "name": node, "input": input, "triggers": [] });
                put.put("tasks", Some(node), data);
            }
            ThreadChange::TaskFailed { step, task, node, error } => {
                let id = wire::task_id(thread, *step, *task);
                let data = json!({ "id": id, "name": node, "error": error, "result": {}, "interrupts": [] });
                put.put("tasks", Some(node), data);
            }
            ThreadChange::Piece { .. } => {
                put.place = 0;
                self.add(&mut put, &heard.change);
            }
            ThreadChange::Hosted(HostedEvent { mode, event, data }) => {
                put.namespace = event.split('|').skip(1).map(str::to_owned).collect();
                if let Some(method) = HOSTED.into_iter().find(|known| known == mode) {
                    put.put(method, None, data);
                }
            }
            ThreadChange::Custom { node, payload } => {
                put.custom(&mut self.tools, Some(node), payload);
            }
            ThreadChange::Step { at, rest, .. } => {
                self.asked.clear();
                put.place = 0;
                for piece in rest {
                    self.add(&mut put, piece);
                }
                for open in std::mem::take(&mut self.messages).into_values() {
                    if put.place + 2 < AFTER_MESSAGES {
                        finish(&mut put, &open);
                    }
                }
                put.place = AFTER_MESSAGES;
                step(&mut put, thread, at);
            }
            ThreadChange::Interrupted { interrupts, .. } => self.asks(&mut put, interrupts),
            ThreadChange::Nested { namespace, payload } => {
                put.namespace = namespace.split('|').map(str::to_owned).collect();
                put.custom(&mut self.tools, None, payload);
            }
        }
        events
    }

    fn add(&mut self, put: &mut Put<'_>, change: &ThreadChange) {
        let ThreadChange::Piece { step, task, node, message, piece, text, is_first } = change
        else {
            return;
        };
        if *is_first {
            if let Some(open) = self.messages.remove(&(*step, *task)) {
                finish(put, &open);
            }
            start(put, node, message, &self.run);
        }
        let delta = Text::Delta { text: piece };
        put.put("messages", Some(node), MessageEvent::ContentBlockDelta { index: 0, delta });
        let open = Open { id: message.clone(), text: text.clone() };
        self.messages.insert((*step, *task), open);
    }

    fn asks(&mut self, put: &mut Put<'_>, interrupts: &[Interrupt]) {
        self.asked.clear();
        for question in interrupts.iter().map(InterruptView::from) {
            let data = json!({
                "interrupt_id": question.id, "payload": wire::asked_value(&question),
            });
            put.put("input.requested", Some(&question.agent), data);
            self.asked.push(question.id);
        }
    }
}

/// Returns the position of a run's end: after all its events, or after its beginning without events.
fn last_seq(run: &Run) -> u64 {
    let first = run.first_event.unwrap_or_default();
    let last = run.last_event.unwrap_or(first);
    (last * PLACES + ENDS).max(first * PLACES + ENDS_SILENT)
}

fn start(put: &mut Put<'_>, node: &str, id: &str, run: &Run) {
    let metadata = OfRun { run_id: run.id, thread_id: run.thread };
    put.put("messages", Some(node), MessageEvent::MessageStart { role: "ai", id, metadata });
    let content = Text::Whole { text: "" };
    put.put("messages", Some(node), MessageEvent::ContentBlockStart { index: 0, content });
}

fn finish(put: &mut Put<'_>, open: &Open) {
    let content = Text::Whole { text: &open.text };
    put.put("messages", None, MessageEvent::ContentBlockFinish { index: 0, content });
    put.put("messages", None, MessageEvent::MessageFinish { id: &open.id });
}

fn step(put: &mut Put<'_>, thread: ThreadId, at: &Checkpoint) {
    let source = wire::source(&at.row);
    for (task, one) in (0_u32..).zip(at.updates()) {
        let update = json!(wire::Update(&one.update));
        let id = wire::task_id(thread, at.row.seq, task);
        let result = json!({
            "id": id, "name": one.node, "error": null, "result": update, "interrupts": [],
        });
        put.put("updates", Some(&one.node), json!({ "node": one.node, "values": update }));
        put.put("tasks", Some(&one.node), result);
    }
    put.put("values", None, wire::Values(&at.state));
    let step = at.number();
    let data = json!({ "id": at.id, "step": step, "source": source, "parent_id": at.parent_id });
    put.put("checkpoints", None, data);
}
