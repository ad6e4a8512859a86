//! Stream modes, and the events of a stream with their IDs.

use serde::Serialize;
use serde_json::{Value, json};

use super::Asked;
use super::run::{RunMetadata, graph_of};
use crate::agent_server::Refusal;
use crate::event_stream;
use axum::body::Bytes;
use perihelion_runtime::ThreadState;
use perihelion_service::kept::{Run, RunStatus};

#[derive(Clone, Debug, Default)]
pub(crate) struct Modes(Vec<String>);

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
    /// Reads the modes of a client; `values` by default.
    pub(crate) fn read(given: Vec<String>) -> Result<Self, Refusal> {
        match given.iter().find(|mode| !MODES.contains(&mode.as_str())) {
            Some(unknown) => Err(Refusal::invalid(format!(
                "{unknown:?} is not one of the stream modes {}",
                MODES.join(", ")
            ))),
            None if given.is_empty() => Ok(Self(vec!["values".into()])),
            None => Ok(Self(given)),
        }
    }

    pub(crate) fn of(run: &Run) -> Self {
        Self::read(Asked::of(run).stream_mode).unwrap_or_default()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }

    pub(super) fn has(&self, mode: &str) -> bool {
        self.0.iter().any(|one| one == mode)
    }
}

/// The attempt for clients: a process that resumes a run repeats none of it.
pub(super) const ATTEMPT: u32 = 1;

#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub name: String,
    /// JSON.
    pub data: String,
    /// Number of the log event, and of its form.
    pub id: (u64, u32),
}

/// The form numbers at the last event of a run, and before its first.
const ROOT_END: u32 = u32::MAX - 3;
const ERROR: u32 = u32::MAX - 2;
const RUN_DONE: u32 = u32::MAX - 1;
const METADATA: u32 = u32::MAX;

/// Greater than the number of everything shown of an event but the end of its run.
pub(crate) const BEFORE_ENDS: u32 = ROOT_END - 1;

impl Wire {
    pub(super) fn new(name: &str, data: &impl Serialize, id: (u64, u32)) -> Self {
        // Serialization only fails for maps whose keys are no strings, and there are none.
        let data = serde_json::to_string(data).unwrap_or_default();
        Self { name: name.to_owned(), data, id }
    }

    /// Returns the first event of a stream.
    ///
    /// Its client sees one attempt, however many processes drive the run: an id has the same data every time.
    pub(crate) fn metadata(run: &Run) -> Self {
        let data = json!({ "run_id": run.id, "attempt": ATTEMPT });
        Self::new("metadata", &data, (run.first_event.unwrap_or_default(), METADATA))
    }

    /// Returns the events that end a run: the end of the graph for clients with the mode `events`, or its error.
    pub(crate) fn ends(run: &Run, modes: &Modes, state: &ThreadState) -> Vec<Self> {
        let last = run.last_event.or(run.first_event).unwrap_or_default();
        let mut ends = Vec::new();
        if run.status == RunStatus::Success && modes.has("events") {
            let output = json!({ "output": super::values(state) });
            ends.push(Self::new("events", &root(run, "on_chain_end", output), (last, ROOT_END)));
        }
        ends.extend(run.error.as_ref().map(|why| Self::new("error", why, (last, ERROR))));
        ends
    }

    pub(crate) fn run_done(run: &Run) -> Self {
        let data = json!({ "status": "run_done", "run_id": run.id });
        let last = (run.last_event.or(run.first_event).unwrap_or_default(), RUN_DONE);
        // For a run without events, it follows the event of its beginning.
        let id = last.max(Self::metadata(run).id);
        Self::new("metadata", &data, id)
    }

    pub(crate) fn read_id(text: &str) -> Option<(u64, u32)> {
        let (event, number) = text.split_once('-').unwrap_or((text, "0"));
        Some((event.parse().ok()?, number.parse().ok()?))
    }

    /// Writes the events after the last one that a client has.
    pub(crate) fn bytes_after(wires: &[Self], after: Option<(u64, u32)>) -> Vec<Bytes> {
        let new = wires.iter().filter(|wire| after.is_none_or(|after| wire.id > after));
        let bytes = new.map(|wire| {
            let id = format!("{}-{}", wire.id.0, wire.id.1);
            event_stream::event(&wire.name, &wire.data, Some(&id))
        });
        bytes.collect()
    }
}

/// Makes an event of the mode `events` about the graph as a whole.
pub(super) fn root(run: &Run, kind: &str, data: Value) -> Value {
    json!({
        "event": kind,
        "data": data,
        "name": graph_of(run),
        "tags": [],
        "run_id": run.id,
        "metadata": RunMetadata::of(run),
        "parent_ids": [],
    })
}
