//! The events of a run as events of a stream.
//!
//! Every form of a change has a number, for any requested modes. The ID of an event combines it with the number of the
//! log event, so it is the same on every process and every time.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::modes::{Modes, Wire, root};
use super::run::{RunMetadata, TaskMetadata, trigger};
use super::state::{Output, Update, Values};
use super::{Asked, interrupt, message, thread};
use perihelion_engine::checkpoint::StepKind;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::InterruptView;
use perihelion_service::kept::Run;
use perihelion_service::{Checkpoint, LoggedChange, ThreadChange};

struct Shown<'a> {
    modes: &'a Modes,
    run: &'a Run,
    id: u64,
    at: DateTime<Utc>,
    number: u32,
    wires: Vec<Wire>,
}

#[derive(Serialize)]
struct Started<'a> {
    id: String,
    name: &'a str,
    input: Values<'a>,
    triggers: [String; 1],
    metadata: RunMetadata<'a>,
}

#[derive(Serialize)]
struct Ended<'a> {
    id: String,
    name: &'a str,
    error: Option<&'a str>,
    result: Written<'a>,
    interrupts: Vec<Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Written<'a> {
    Nothing {},
    Update(Update<'a>),
}

#[derive(Serialize)]
struct Debug<'a, T> {
    step: i64,
    timestamp: DateTime<Utc>,
    #[serde(rename = "type")]
    kind: &'static str,
    payload: &'a T,
}

/// An event of the mode `events`; `data` is what `D` makes of it.
#[derive(Serialize)]
struct NodeEvent<'a, D> {
    event: &'static str,
    data: D,
    name: &'a str,
    tags: [String; 1],
    run_id: String,
    metadata: TaskMetadata<'a>,
    parent_ids: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Data<'a> {
    Input(Values<'a>),
    Chunk(Update<'a>),
    Output(Update<'a>),
    #[serde(rename = "input")]
    Question(Value),
    #[serde(rename = "chunk")]
    Piece(Value),
    #[serde(rename = "output")]
    Message(Value),
}

#[derive(Clone, Copy)]
struct Task<'a> {
    step: u64,
    number: u32,
    node: &'a str,
}

pub(crate) fn of(heard: &LoggedChange, run: &Run, modes: &Modes) -> Vec<Wire> {
    let mut shown = Shown { modes, run, id: heard.id, at: heard.at, number: 0, wires: Vec::new() };
    if heard.is_first {
        let input = json!({ "input": Asked::of(run).input });
        shown.put("events", "events", &root(run, "on_chain_start", input));
    }
    shown.change(&heard.change);
    shown.wires
}

impl<'a> Shown<'a> {
    /// Shows an event in a mode; it is made only on request, and counted in any case.
    fn put(&mut self, mode: &str, name: &str, data: &impl Serialize) {
        if self.modes.has(mode) {
            self.wires.push(Wire::new(name, data, (self.id, self.number)));
        }
        self.number += 1;
    }

    fn debug(&mut self, step: i64, kind: &'static str, payload: &impl Serialize) {
        let timestamp = self.at;
        self.put("debug", "debug", &Debug { step, timestamp, kind, payload });
    }

    fn task_id(&self, task: Task<'_>) -> String {
        interrupt::task_id(ThreadId(self.run.thread), task.step, task.number)
    }

    fn change(&mut self, change: &'a ThreadChange) {
        match change {
            ThreadChange::ContinuesFrom { state } => self.put("values", "values", &Output(state)),
            ThreadChange::TaskStarted { step, task, node, state } => {
                let task = Task { step: *step, number: *task, node };
                let started = Started {
                    id: self.task_id(task),
                    name: node,
                    input: Values(state),
                    triggers: [trigger(node)],
                    metadata: RunMetadata::of(self.run),
                };
                self.put("tasks", "tasks", &started);
                self.debug(step.cast_signed(), "task", &started);
                self.node_event("on_chain_start", task, Data::Input(Values(state)));
            }
            ThreadChange::TaskFailed { step, task, node, error } => {
                let task = Task { step: *step, number: *task, node };
                self.ended(task, Some(error), Written::Nothing {}, Vec::new());
            }
            ThreadChange::Piece { .. } => self.piece(change),
            ThreadChange::Hosted(own) => self.put(&own.mode, &own.event, &own.data),
            ThreadChange::Custom { payload, .. } => self.put("custom", "custom", payload),
            ThreadChange::Step { at, rest, streamed } => {
                rest.iter().for_each(|one| self.piece(one));
                self.step(at, streamed);
            }
            ThreadChange::Interrupted { step, interrupts, asking, state } => {
                let open: Vec<InterruptView> = interrupts.iter().map(InterruptView::from).collect();
                let asked = interrupt::shown_all(&open);
                self.put("updates", "updates", &json!({ "__interrupt__": asked }));
                if open.is_empty() {
                    // It paused: nothing is asked.
                    return;
                }
                self.put("values", "values", &Interrupted { state: Output(state), asked });
                if state.about().is_hosted {
                    return;
                }
                for (index, question) in (0_u32..).zip(&open) {
                    // Events of an older version do not name the task that asks.
                    let number = asking.get(index as usize).copied().unwrap_or(index);
                    let task = Task { step: *step, number, node: &question.agent };
                    let asks = vec![interrupt::shown(question)];
                    self.ended(task, None, Written::Nothing {}, asks);
                }
            }
            ThreadChange::Nested { namespace, payload } => {
                if Asked::of(self.run).subgraphs {
                    self.put("custom", &format!("custom|{namespace}"), payload);
                }
            }
        }
    }

    fn ended(
        &mut self,
        task: Task<'_>,
        error: Option<&str>,
        result: Written<'_>,
        interrupts: Vec<Value>,
    ) {
        let ended = Ended { id: self.task_id(task), name: task.node, error, result, interrupts };
        self.put("tasks", "tasks", &ended);
        self.debug(task.step.cast_signed(), "task_result", &ended);
    }

    fn piece(&mut self, change: &ThreadChange) {
        let ThreadChange::Piece { step, task, node, message: id, piece, text, is_first } = change
        else {
            return;
        };
        let task = Task { step: *step, number: *task, node };
        let chunk = message::chunk(id, node, piece);
        self.message(task, &chunk);
        if *is_first {
            self.message_metadata(task, id);
        }
        self.put("messages", "messages/partial", &[message::partial(id, node, text)]);
        if *is_first {
            self.model_event("on_chat_model_start", task, Data::Question(json!({})));
        }
        self.model_event("on_chat_model_stream", task, Data::Piece(chunk));
    }

    fn message(&mut self, task: Task<'_>, message: &Value) {
        let about = TaskMetadata::of(self.run, task.step, task.number, task.node);
        self.put("messages-tuple", "messages", &(message, about));
    }

    fn message_metadata(&mut self, task: Task<'_>, id: &str) {
        let about = TaskMetadata::of(self.run, task.step, task.number, task.node);
        self.put("messages", "messages/metadata", &json!({ id: { "metadata": about } }));
    }

    fn step(&mut self, at: &'a Checkpoint, streamed: &[String]) {
        let step = at.row.seq;
        if at.state.about().is_hosted && at.row.kind == StepKind::Input {
            // The input is merged by the step that follows.
            return;
        }
        for (number, one) in (0_u32..).zip(at.updates()) {
            let task = Task { step, number, node: &one.node };
            self.put("updates", "updates", &BTreeMap::from([(&one.node, Update(&one.update))]));
            self.ended(task, None, Written::Update(Update(&one.update)), Vec::new());
            let messages = one.update.messages();
            for words in messages.iter().filter(|words| words.role != "user") {
                let reply = message::shown(words);
                // Its chunks were sent already.
                if !streamed.contains(&words.id) {
                    self.message(task, &reply);
                    self.message_metadata(task, &words.id);
                }
                self.put("messages", "messages/complete", &[&reply]);
                self.model_event("on_chat_model_end", task, Data::Message(reply));
            }
            self.node_event("on_chain_stream", task, Data::Chunk(Update(&one.update)));
            self.node_event("on_chain_end", task, Data::Output(Update(&one.update)));
        }
        if !at.state.is_silent() {
            self.put("values", "values", &Output(&at.state));
        }
        let whole = thread::Committed { thread: ThreadId(self.run.thread), run: self.run.id, at };
        self.put("checkpoints", "checkpoints", &whole);
        self.debug(at.number(), "checkpoint", &whole);
    }

    fn node_event(&mut self, event: &'static str, task: Task<'_>, data: Data<'_>) {
        let id = self.task_id(task);
        self.event(event, task, data, format!("graph:step:{}", task.step), id, Vec::new());
    }

    fn model_event(&mut self, event: &'static str, task: Task<'_>, data: Data<'_>) {
        let node = self.task_id(task);
        let id = Uuid::new_v5(&self.run.thread, format!("model/{node}").as_bytes()).to_string();
        self.event(event, task, data, "seq:step:1".into(), id, vec![node]);
    }

    fn event(
        &mut self,
        event: &'static str,
        task: Task<'_>,
        data: Data<'_>,
        tag: String,
        run_id: String,
        parents: Vec<String>,
    ) {
        let metadata = TaskMetadata::of(self.run, task.step, task.number, task.node);
        let parent_ids = [self.run.id.to_string()].into_iter().chain(parents).collect();
        let event =
            NodeEvent { event, data, name: task.node, tags: [tag], run_id, metadata, parent_ids };
        self.put("events", "events", &event);
    }
}

#[derive(Serialize)]
struct Interrupted<'a> {
    #[serde(flatten)]
    state: Output<'a>,
    #[serde(rename = "__interrupt__")]
    asked: Value,
}
