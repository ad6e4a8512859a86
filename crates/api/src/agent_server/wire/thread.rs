//! Threads and their states in the clients' format.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::interrupt;
use super::run::RunMetadata;
use super::state::{Update, Values, shown_checkpoint};
use perihelion_engine::checkpoint::{StepKind, StepRow};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::InterruptView;
use perihelion_service::{Checkpoint, ClientStatus, StatesOf, StepRun, ThreadView, assistant_of};

/// The fields to show; all by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(pub Vec<String>);

impl Fields {
    pub(crate) fn states(&self) -> StatesOf {
        let has = |name: &str| self.0.iter().any(|field| field == name);
        match &self.0[..] {
            [] => StatesOf::All,
            _ if has("values") => StatesOf::All,
            _ if has("title") => StatesOf::Untitled,
            _ => StatesOf::None,
        }
    }

    pub(crate) fn only(&self, mut shown: Value) -> Value {
        if let (false, Some(all)) = (self.0.is_empty(), shown.as_object_mut()) {
            all.retain(|name, _| self.0.iter().any(|field| field == name));
        }
        shown
    }
}

pub(crate) fn shown(view: &ThreadView, fields: &Fields) -> Value {
    let ThreadView { info, status, meta, .. } = view;
    let mut metadata = match &meta.metadata {
        Value::Object(noted) => noted.clone(),
        _ => Map::new(),
    };
    if info.head > 0 {
        metadata.entry("graph_id").or_insert_with(|| json!(info.graph));
        let assistant = assistant_of(&info.graph);
        metadata.entry("assistant_id").or_insert_with(|| json!(assistant));
    }
    if let Some(title) = info.shown_title() {
        metadata.entry("title").or_insert_with(|| json!(title));
    }
    let updated = meta.updated_at.map_or(info.updated_at, |noted| noted.max(info.updated_at));
    let mut shown = json!({
        "thread_id": info.id,
        "created_at": info.created_at,
        "updated_at": updated,
        "state_updated_at": info.updated_at,
        "metadata": metadata,
        "status": word(*status),
        "config": meta.config,
        "values": view.state.as_ref().map(Values),
    });
    if info.head > 0 || *status == ClientStatus::Error {
        shown["error"] = error(view);
    }
    if info.head > 0 {
        shown["interrupts"] =
            Value::Object(interrupt::by_task(info.id, info.head + 1, &view.open, &view.asking));
    }
    if info.archived.is_some() && view.state.is_none() {
        shown["archived"] = json!(true);
    }
    // Only for those who ask for it: the clients of the protocol know no such field.
    if fields.0.iter().any(|field| field == "title") {
        shown["title"] = json!(view.title());
    }
    fields.only(shown)
}

/// Explains why the last run of a thread did not finish, if so.
fn error(view: &ThreadView) -> Value {
    match view.status {
        ClientStatus::Error => view.failure.clone().unwrap_or_default(),
        ClientStatus::Interrupted if view.was_stopped => {
            json!({ "error": "UserInterrupt", "message": "the run was stopped" })
        }
        _ => Value::Null,
    }
}

/// Shows the state of a thread that has had no input.
pub(crate) fn empty_state() -> Value {
    json!({
        "values": {}, "next": [], "tasks": [], "metadata": null, "created_at": null, "checkpoint": null,
        "parent_checkpoint": null, "interrupts": [], "checkpoint_id": null, "parent_checkpoint_id": null,
    })
}

/// Shows a state of a thread at a step; `open` are the questions that wait there.
pub(crate) fn snapshot(
    thread: ThreadId,
    at: &Checkpoint,
    open: &[InterruptView],
    asking: &[u32],
    results: Option<&Checkpoint>,
) -> Value {
    let step = at.row.seq;
    let asked = interrupt::by_task(thread, step + 1, open, asking);
    let tasks: Vec<Value> = (0_u32..)
        .zip(&at.next)
        .map(|(index, node)| {
            let id = interrupt::task_id(thread, step + 1, index);
            let result = results.and_then(|next| next.written.get(index as usize));
            let result = result.filter(|one| one.node == *node);
            json!({
                "id": id,
                "name": node,
                "path": ["__pregel_pull", node],
                "error": null,
                "interrupts": asked.get(&id).cloned().unwrap_or_else(|| json!([])),
                "checkpoint": null,
                "state": null,
                "result": result.map(|one| Update(&one.update)),
            })
        })
        .collect();
    json!({
        "values": Values(&at.state),
        "next": at.next,
        "tasks": tasks,
        "metadata": metadata_of(thread, at),
        "created_at": at.row.at,
        "checkpoint": shown_checkpoint(thread, &at.id),
        "parent_checkpoint": shown_checkpoint(thread, &at.parent_id),
        "interrupts": open.iter().map(interrupt::shown).collect::<Vec<_>>(),
        "checkpoint_id": at.id,
        "parent_checkpoint_id": at.parent_id,
    })
}

/// Shows the tasks of a hosted graph as its process knows them, or the state of one of its subgraphs.
///
/// Its questions have the IDs under which clients answer them.
pub(crate) fn show_hosted(shown: &mut Value, mut found: Value, is_subgraph: bool) {
    let mut open = shown["interrupts"].as_array().cloned().unwrap_or_default();
    let mut ids = Map::new();
    for asked in found["interrupts"].as_array().into_iter().flatten() {
        let same = open.iter().position(|one| one["value"] == asked["value"]);
        if let (Some(place), Some(id)) = (same, asked["id"].as_str()) {
            ids.insert(id.to_owned(), open.remove(place)["id"].clone());
        }
    }
    rename(&mut found, &ids);
    if is_subgraph {
        *shown = found;
        return;
    }
    for name in ["values", "next", "tasks"] {
        shown[name] = found[name].take();
    }
}

fn rename(value: &mut Value, ids: &Map<String, Value>) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|one| rename(one, ids)),
        Value::Object(fields) => {
            if let Some(id) = fields.get("id").and_then(|id| ids.get(id.as_str()?)) {
                fields["id"] = id.clone();
            }
            fields.values_mut().for_each(|one| rename(one, ids));
        }
        _ => {}
    }
}

/// A checkpoint that a run has just made, which becomes JSON only when it is sent.
pub(super) struct Committed<'a> {
    pub thread: ThreadId,
    pub run: Uuid,
    pub at: &'a Checkpoint,
}

impl Serialize for Committed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { thread, run, at } = self;
        let config = |id: &str| {
            json!({ "configurable": {
                "thread_id": thread, "checkpoint_ns": "", "run_id": run, "checkpoint_id": id,
            } })
        };
        let task = |(task, node): (u32, &String)| {
            let id = interrupt::task_id(*thread, at.row.seq + 1, task);
            json!({ "id": id, "name": node, "interrupts": [], "state": null })
        };
        let shown = json!({
            "config": config(&at.id),
            "parent_config": config(&at.parent_id),
            "values": Values(&at.state),
            "metadata": metadata_of(*thread, at),
            "next": at.next,
            "tasks": (0..).zip(&at.next).map(task).collect::<Vec<_>>(),
            "checkpoint": shown_checkpoint(*thread, &at.id),
            "parent_checkpoint": shown_checkpoint(*thread, &at.parent_id),
        });
        shown.serialize(serializer)
    }
}

pub(crate) fn step_metadata(
    graph: &str,
    thread: ThreadId,
    row: &StepRow,
    run: Option<StepRun>,
) -> Value {
    let mut metadata = match run {
        Some(run) => json!(RunMetadata::new(graph, thread, run)),
        None => json!({ "graph_id": graph, "thread_id": thread }),
    };
    metadata["source"] = json!(source(row));
    metadata["step"] = json!(row.seq);
    metadata["parents"] = json!({});
    metadata
}

fn metadata_of(thread: ThreadId, at: &Checkpoint) -> Value {
    let mut metadata = step_metadata(&at.state.about().name, thread, &at.row, at.run);
    metadata["step"] = json!(at.number());
    metadata
}

pub(crate) fn source(row: &StepRow) -> &'static str {
    match row.kind {
        StepKind::Input => "input",
        StepKind::Edit => "update",
        StepKind::Fork => "fork",
        StepKind::Loop => "loop",
    }
}

fn word(status: ClientStatus) -> &'static str {
    match status {
        ClientStatus::Idle => "idle",
        ClientStatus::Busy => "busy",
        ClientStatus::Interrupted => "interrupted",
        ClientStatus::Error => "error",
    }
}
