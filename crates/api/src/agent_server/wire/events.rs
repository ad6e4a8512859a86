//! What happens in a run as the events of a stream.
//!
//! Everything that can be shown of a happening has a number of its own, whatever modes a client asked for: the id of
//! an event is the number of the log's event and this one, so that it is the same on every process and every time.

use serde_json::{Value, json};

use super::{checkpoint, interrupt, message, state, thread};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::InterruptView;
use perihelion_service::kept::Run;
use perihelion_service::{Checkpoint, Happening, Heard};
use perihelion_star::GRAPH;

/// What a client wants to be shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modes(Vec<String>);

/// One event of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub name: String,
    pub data: Value,
    /// Number of the log's event, and of what is shown of it.
    pub id: (u64, u32),
}

/// Names of the modes there are.
const MODES: [&str; 9] = [
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "custom",
    "tasks",
    "checkpoints",
    "debug",
    "events",
];

impl Modes {
    /// Reads the modes that a client names; none: `values`.
    ///
    /// # Errors
    /// The mode that there is none of.
    pub(crate) fn read(given: Vec<String>) -> Result<Self, String> {
        match given.iter().find(|mode| !MODES.contains(&mode.as_str())) {
            Some(unknown) => {
                Err(format!("{unknown:?} is not one of the stream modes {}", MODES.join(", ")))
            }
            None if given.is_empty() => Ok(Self(vec!["values".into()])),
            None => Ok(Self(given)),
        }
    }

    /// Returns their names.
    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }

    fn has(&self, mode: &str) -> bool {
        self.0.iter().any(|one| one == mode)
    }
}

/// The attempt that clients see: a process that resumes a run repeats nothing of it.
const ATTEMPT: u32 = 1;

/// Collects what is shown of one happening.
struct Shown<'a> {
    modes: &'a Modes,
    id: u64,
    number: u32,
    wires: Vec<Wire>,
}

impl Shown<'_> {
    /// Shows an event in a mode; it is made only where it is wanted, and counted in any case.
    fn put(&mut self, mode: &str, name: &str, data: impl FnOnce() -> Value) {
        if self.modes.has(mode) {
            let id = (self.id, self.number);
            self.wires.push(Wire { name: name.to_owned(), data: data(), id });
        }
        self.number += 1;
    }
}

impl Wire {
    /// Returns the first event of a stream.
    ///
    /// Its client sees one attempt, however many processes drive the run: an id has the same data every time.
    pub(crate) fn metadata(run: &Run) -> Self {
        let data = json!({ "run_id": run.id, "attempt": ATTEMPT });
        Self { name: "metadata".into(), data, id: (run.first_event.unwrap_or_default(), u32::MAX) }
    }

    /// Returns the event that says why a run failed.
    pub(crate) fn error(run: &Run, why: &Value) -> Self {
        let id = (run.last_event.or(run.first_event).unwrap_or_default(), u32::MAX - 2);
        Self { name: "error".into(), data: why.clone(), id }
    }

    /// Returns the event by which the stream of a thread says that a run has ended.
    pub(crate) fn run_done(run: &Run) -> Self {
        let data = json!({ "status": "run_done", "run_id": run.id });
        let last = (run.last_event.or(run.first_event).unwrap_or_default(), u32::MAX - 1);
        // Of a run that told nothing it follows the event by which it began.
        let id = last.max(Self::metadata(run).id);
        Self { name: "metadata".into(), data, id }
    }

    /// Returns its id as clients send it back.
    pub(crate) fn id(&self) -> String {
        format!("{}-{}", self.id.0, self.id.1)
    }

    /// Reads an id that a client sent back.
    pub(crate) fn read_id(text: &str) -> Option<(u64, u32)> {
        let (event, number) = text.split_once('-').unwrap_or((text, "0"));
        Some((event.parse().ok()?, number.parse().ok()?))
    }

    /// Shows a happening in the modes that a client wants.
    pub(crate) fn of(heard: &Heard, run: &Run, modes: &Modes) -> Vec<Self> {
        let mut shown = Shown { modes, id: heard.id, number: 0, wires: Vec::new() };
        let place = Place { thread: ThreadId(run.thread), run };
        let debug = |step: u64, kind: &str, payload: Value| json!({ "step": step, "timestamp": heard.at, "type": kind, "payload": payload });
        match &heard.happening {
            Happening::StandsAt { state } => shown.put("values", "values", || state::values(state)),
            Happening::TaskStarted { step, task, node, state } => {
                let id = interrupt::task_id(place.thread, *step, *task);
                let started = || {
                    json!({
                        "id": id, "name": node, "input": state::values(state),
                        "triggers": [format!("branch:to:{node}")], "metadata": place.metadata(),
                    })
                };
                shown.put("tasks", "tasks", started);
                shown.put("debug", "debug", || debug(*step, "task", started()));
                shown.put("events", "events", || {
                    place.event("on_chain_start", *step, node, json!({}))
                });
            }
            Happening::TaskFailed { step, task, node, error } => {
                let id = interrupt::task_id(place.thread, *step, *task);
                let failed = || json!({ "id": id, "name": node, "error": error, "result": {}, "interrupts": [] });
                shown.put("tasks", "tasks", failed);
                shown.put("debug", "debug", || debug(*step, "task_result", failed()));
            }
            Happening::Piece { step, task, node, message: id, piece, text, is_first } => {
                let about = || place.about(*step, *task, node);
                shown.put("messages-tuple", "messages", || {
                    json!([message::chunk(id, node, piece), about()])
                });
                if *is_first {
                    shown.put(
                        "messages",
                        "messages/metadata",
                        || json!({ (id.clone()): { "metadata": about() } }),
                    );
                }
                shown.put("messages", "messages/partial", || {
                    json!([message::partial(id, node, text)])
                });
                if *is_first {
                    shown.put("events", "events", || {
                        place.event("on_chat_model_start", *step, node, json!({ "input": {} }))
                    });
                }
                shown.put("events", "events", || {
                    let chunk = json!({ "chunk": message::chunk(id, node, piece) });
                    place.event("on_chat_model_stream", *step, node, chunk)
                });
            }
            Happening::Custom { payload } => shown.put("custom", "custom", || payload.clone()),
            Happening::Step(at) => step(&mut shown, at, &place, &debug),
            Happening::Interrupted { step, interrupts, asking, state } => {
                let open: Vec<InterruptView> = interrupts.iter().map(InterruptView::from).collect();
                let asked = || interrupt::shown_all(&open);
                shown.put("updates", "updates", || json!({ "__interrupt__": asked() }));
                if open.is_empty() {
                    // It paused: nothing is asked.
                    return shown.wires;
                }
                shown.put("values", "values", || {
                    let mut values = state::values(state);
                    values["__interrupt__"] = asked();
                    values
                });
                for (index, question) in (0_u32..).zip(&open) {
                    // An older version did not tell which task asks.
                    let task = asking.get(index as usize).copied().unwrap_or(index);
                    let id = interrupt::task_id(place.thread, *step, task);
                    let asks = || {
                        json!({
                            "id": id, "name": question.agent, "error": null, "result": {},
                            "interrupts": [interrupt::shown(question)],
                        })
                    };
                    shown.put("tasks", "tasks", asks);
                    shown.put("debug", "debug", || debug(*step, "task_result", asks()));
                }
            }
            Happening::Nested { namespace, payload } => {
                if run.kwargs["shown"]["subgraphs"] == true {
                    let name = format!("custom|{namespace}");
                    shown.put("custom", &name, || payload.clone());
                }
            }
        }
        shown.wires
    }
}

fn step(
    shown: &mut Shown<'_>,
    at: &Checkpoint,
    place: &Place<'_>,
    debug: &dyn Fn(u64, &str, Value) -> Value,
) {
    let thread = place.thread;
    let number = at.row.seq;
    let is_loop = at.row.kind.as_str() == "loop";
    if is_loop {
        for (task, one) in (0_u32..).zip(&at.written) {
            let id = interrupt::task_id(thread, number, task);
            let result = || {
                let result = state::update(&one.update);
                json!({ "id": id, "name": one.node, "error": null, "result": result, "interrupts": [] })
            };
            shown.put(
                "updates",
                "updates",
                || json!({ (one.node.clone()): state::update(&one.update) }),
            );
            shown.put("tasks", "tasks", result);
            shown.put("debug", "debug", || debug(number, "task_result", result()));
            for words in one.update.messages.iter().flatten().filter(|words| words.role != "user") {
                shown.put("events", "events", || {
                    let output = json!({ "output": message::shown(words) });
                    place.event("on_chat_model_end", number, &one.node, output)
                });
            }
            shown.put("events", "events", || {
                let output = json!({ "output": state::update(&one.update) });
                place.event("on_chain_end", number, &one.node, output)
            });
            if let Some(messages) = &one.update.messages {
                shown.put("messages", "messages/complete", || {
                    messages.iter().map(message::shown).collect()
                });
            }
        }
    }
    shown.put("values", "values", || state::values(&at.state));
    let whole = || {
        let config = |step: u64| {
            json!({ "configurable": {
                "thread_id": thread, "checkpoint_ns": "", "run_id": place.run.id,
                "checkpoint_id": checkpoint::checkpoint_id(thread, step),
            } })
        };
        let tasks: Vec<Value> = (0_u32..)
            .zip(&at.next)
            .map(|(task, node)| {
                let id = interrupt::task_id(thread, number + 1, task);
                json!({ "id": id, "name": node, "interrupts": [], "state": null })
            })
            .collect();
        json!({
            "config": config(number),
            "parent_config": at.parent.map(config),
            "values": state::values(&at.state),
            "metadata": { "source": thread::source(at), "step": number, "parents": {} },
            "next": at.next,
            "tasks": tasks,
            "checkpoint": checkpoint::shown(thread, number),
            "parent_checkpoint": at.parent.map(|step| checkpoint::shown(thread, step)),
        })
    };
    shown.put("checkpoints", "checkpoints", whole);
    shown.put("debug", "debug", || debug(number, "checkpoint", whole()));
}

/// Where a happening belongs.
struct Place<'a> {
    thread: ThreadId,
    run: &'a Run,
}

impl Place<'_> {
    fn metadata(&self) -> Value {
        json!({
            "graph_id": GRAPH,
            "assistant_id": self.run.assistant,
            "run_attempt": ATTEMPT,
            "thread_id": self.thread,
            "run_id": self.run.id,
        })
    }

    fn about(&self, step: u64, task: u32, node: &str) -> Value {
        let mut about = self.metadata();
        let space = format!("{node}:{}", interrupt::task_id(self.thread, step, task));
        about["langgraph_step"] = json!(step);
        about["langgraph_node"] = json!(node);
        about["langgraph_triggers"] = json!([format!("branch:to:{node}")]);
        about["langgraph_path"] = json!(["__pregel_pull", node]);
        about["langgraph_checkpoint_ns"] = json!(space);
        about["checkpoint_ns"] = json!(space);
        about
    }

    fn event(&self, kind: &str, step: u64, node: &str, data: Value) -> Value {
        json!({
            "event": kind,
            "data": data,
            "name": node,
            "tags": [format!("graph:step:{step}")],
            "run_id": self.run.id,
            "metadata": self.about(step, 0, node),
            "parent_ids": [self.run.id],
        })
    }
}
