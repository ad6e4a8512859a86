//! What happens in the runs of a thread as events of the protocol.
//!
//! Everything that a log's event can be shown as has a place of its own, whatever channels a client asked for.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::super::wire;
use perihelion_engine::graph::Interrupt;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::InterruptView;
use perihelion_service::kept::{Run, RunStatus};
use perihelion_service::{Checkpoint, Happening, Heard};
use perihelion_star::GRAPH;

/// Places of one event of the log.
const PLACES: u64 = 1_024;

/// The place after what ends of messages take.
const AFTER_MESSAGES: u64 = 256;

/// Places at the last event of a run, and at the one before its first.
const ENDS: u64 = 1_000;
const BEGINS: u64 = 1_010;
const ANSWERED: u64 = 1_011;
const GONE: u64 = 1_012;
const ENDS_SILENT: u64 = 1_013;

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub seq: u64,
    pub id: String,
    pub method: &'static str,
    pub namespace: Vec<String>,
    pub node: Option<String>,
    pub at: DateTime<Utc>,
    pub data: Value,
}

impl Event {
    /// Shows it as a frame.
    pub(super) fn shown(&self) -> Value {
        let mut params = json!({
            "namespace": self.namespace, "timestamp": self.at.timestamp_millis(), "data": self.data,
        });
        if let Some(node) = &self.node {
            params["node"] = json!(node);
        }
        json!({ "type": "event", "event_id": self.id, "seq": self.seq, "method": self.method, "params": params })
    }
}

/// A message that is being written.
struct Open {
    id: String,
    text: String,
}

/// Shows one run.
pub(super) struct Shown {
    run: Run,
    /// The newest time that is known of it.
    at: DateTime<Utc>,
    messages: BTreeMap<(u64, u32), Open>,
    asked: Vec<String>,
    has_heard: bool,
}

/// Puts events of one event of the log into their places.
struct Put<'a> {
    event: u64,
    place: u64,
    at: DateTime<Utc>,
    to: &'a mut Vec<Event>,
}

impl Put<'_> {
    fn put(&mut self, method: &'static str, node: Option<&str>, data: Value) {
        let seq = self.event * PLACES + self.place;
        self.to.push(Event {
            seq,
            id: format!("{}-{}", self.event, self.place),
            method,
            namespace: Vec::new(),
            node: node.map(str::to_owned),
            at: self.at,
            data,
        });
        self.place += 1;
    }
}

impl Shown {
    pub(super) fn new(run: Run) -> Self {
        let at = run.created_at;
        Self { run, at, messages: BTreeMap::new(), asked: Vec::new(), has_heard: false }
    }

    /// Returns whether the log told anything of the run.
    pub(super) fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// Returns the questions that it left open.
    pub(super) fn into_asked(self) -> Vec<String> {
        self.asked
    }

    fn of_run(&self, seq: u64, word: &str, method: &'static str, data: Value) -> Event {
        let id = format!("{}:{word}", self.run.id);
        Event { seq, id, method, namespace: Vec::new(), node: None, at: self.at, data }
    }

    /// Shows that it has begun; `asked` are the questions that were open before it.
    pub(super) fn begun(&self, asked: &[String]) -> Vec<Event> {
        let first = self.run.first_event.unwrap_or_default() * PLACES;
        let running = json!({ "event": "running", "graph_name": GRAPH });
        let mut events = vec![self.of_run(first + BEGINS, "running", "lifecycle", running)];
        if self.answers() && !asked.is_empty() {
            let resume = self.resume();
            let named: Vec<&String> =
                asked.iter().filter(|id| resume.get(id.as_str()).is_some()).collect();
            let ids = if named.is_empty() { asked.iter().collect() } else { named };
            let data = json!({ "interrupt_ids": ids });
            events.push(self.of_run(first + ANSWERED, "answered", "input.answered", data));
        }
        events
    }

    /// Returns whether it answers questions that were open before it.
    pub(super) fn answers(&self) -> bool {
        !self.resume().is_null()
    }

    fn resume(&self) -> &Value {
        &self.run.kwargs["shown"]["command"]["resume"]
    }

    /// Shows that it has ended, after the last event of it in the log.
    pub(super) fn ended(&self, run: &Run, values: Option<Value>) -> Vec<Event> {
        let last = last_seq(run);
        let mut events = Vec::new();
        let at = run.updated_at;
        if let Some(values) = values {
            events.push(Event { at, ..self.of_run(last - 1, "values", "values", values) });
        }
        let (word, error) = match run.status {
            RunStatus::Success if !self.asked.is_empty() => ("interrupted", None),
            RunStatus::Success => ("completed", None),
            RunStatus::Error | RunStatus::Timeout => {
                let why = run.error.as_ref().and_then(|why| why["message"].as_str());
                ("failed", Some(why.unwrap_or("the run failed").to_owned()))
            }
            // It was stopped; nobody is asked anything.
            _ => ("interrupted", None),
        };
        let mut data = json!({ "event": word, "graph_name": GRAPH });
        if let Some(error) = error {
            data["error"] = json!(error);
        }
        events.push(Event { at, ..self.of_run(last, "ended", "lifecycle", data) });
        events
    }

    /// Returns whether a run that has ended has no event after one of its thread's, by its `seq`.
    pub(super) fn is_past(run: &Run, seq: u64) -> bool {
        run.status.is_terminal() && last_seq(run) <= seq
    }

    /// Shows that it is no more: it was rolled back.
    pub(super) fn gone(&self) -> Event {
        let first = self.run.first_event.unwrap_or_default() * PLACES;
        let data = json!({ "event": "interrupted", "graph_name": GRAPH });
        self.of_run(first + GONE, "gone", "lifecycle", data)
    }

    /// Shows a happening.
    pub(super) fn of(&mut self, heard: &Heard) -> Vec<Event> {
        let mut events = Vec::new();
        self.has_heard = true;
        let thread = ThreadId(self.run.thread);
        self.at = heard.at;
        let mut put = Put { event: heard.id, place: AFTER_MESSAGES, at: self.at, to: &mut events };
        match &heard.happening {
            Happening::StandsAt { state } => {
                put.put("values", None, wire::values(state));
            }
            Happening::TaskStarted { step, task, node, state } => {
                let id = wire::task_id(thread, *step, *task);
                let data =
                    json!({ "id": id, "name": node, "input": wire::values(state), "triggers": [] });
                put.put("tasks", Some(node), data);
            }
            Happening::TaskFailed { step, task, node, error } => {
                let id = wire::task_id(thread, *step, *task);
                let data = json!({ "id": id, "name": node, "error": error, "result": {}, "interrupts": [] });
                put.put("tasks", Some(node), data);
            }
            Happening::Piece { step, task, node, message, piece, text, is_first } => {
                put.place = 0;
                if *is_first {
                    if let Some(open) = self.messages.remove(&(*step, *task)) {
                        finish(&mut put, &open);
                    }
                    start(&mut put, node, message, &self.run);
                }
                let delta = json!({ "type": "text-delta", "text": piece });
                let data = json!({ "event": "content-block-delta", "index": 0, "delta": delta });
                put.put("messages", Some(node), data);
                let open = Open { id: message.clone(), text: text.clone() };
                self.messages.insert((*step, *task), open);
            }
            Happening::Custom { payload } => put.put("custom", None, json!({ "payload": payload })),
            Happening::Step(at) => {
                self.asked.clear();
                put.place = 0;
                for open in std::mem::take(&mut self.messages).into_values() {
                    if put.place + 2 < AFTER_MESSAGES {
                        finish(&mut put, &open);
                    }
                }
                put.place = AFTER_MESSAGES;
                step(&mut put, thread, at);
            }
            Happening::Interrupted { interrupts, .. } => self.asks(&mut put, interrupts),
            Happening::Nested { namespace, payload } => {
                put.put("custom", None, json!({ "payload": payload }));
                let path = namespace.split('|').map(str::to_owned).collect();
                put.to.iter_mut().for_each(|event| event.namespace = Vec::clone(&path));
            }
        }
        events
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

/// Returns the place of a run's end: after all that it told, and after its beginning where it told nothing.
fn last_seq(run: &Run) -> u64 {
    let first = run.first_event.unwrap_or_default();
    let last = run.last_event.unwrap_or(first);
    (last * PLACES + ENDS).max(first * PLACES + ENDS_SILENT)
}

fn start(put: &mut Put<'_>, node: &str, message: &str, run: &Run) {
    let metadata = json!({ "run_id": run.id, "thread_id": run.thread });
    let data =
        json!({ "event": "message-start", "role": "ai", "id": message, "metadata": metadata });
    put.put("messages", Some(node), data);
    let content = json!({ "type": "text", "text": "" });
    let data = json!({ "event": "content-block-start", "index": 0, "content": content });
    put.put("messages", Some(node), data);
}

fn finish(put: &mut Put<'_>, open: &Open) {
    let content = json!({ "type": "text", "text": open.text });
    let data = json!({ "event": "content-block-finish", "index": 0, "content": content });
    put.put("messages", None, data);
    put.put("messages", None, json!({ "event": "message-finish", "id": open.id }));
}

fn step(put: &mut Put<'_>, thread: ThreadId, at: &Checkpoint) {
    if at.row.kind.as_str() == "loop" {
        for (task, one) in (0_u32..).zip(&at.written) {
            let update = wire::shown_update(&one.update);
            let id = wire::task_id(thread, at.row.seq, task);
            let result = json!({
                "id": id, "name": one.node, "error": null, "result": update, "interrupts": [],
            });
            put.put("updates", Some(&one.node), json!({ "node": one.node, "values": update }));
            put.put("tasks", Some(&one.node), result);
        }
    }
    put.put("values", None, wire::values(&at.state));
    let parent = at.parent.map(|step| wire::checkpoint_id(thread, step));
    let mut data = json!({
        "id": wire::checkpoint_id(thread, at.row.seq), "step": at.row.seq, "source": wire::source(at),
    });
    if let Some(parent) = parent {
        data["parent_id"] = json!(parent);
    }
    put.put("checkpoints", None, data);
}
