//! Results as both sides can be compared by: without times, and with small numbers in the place of ids.

use std::collections::HashMap;

use perihelion_engine::checkpoint::{
    BlobRow, EffectRow, Encoded, Error, Loaded, OpenInterrupt, PendingRow, RunRow, SnapshotRow,
    StepRow, ThreadDump, ThreadInfo,
};
use perihelion_engine::ids::{RunId, ThreadId};
use serde_json::{Value, json};

/// The threads of a story under the ids that one side gave them.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub threads: HashMap<ThreadId, usize>,
    pub runs: HashMap<RunId, u8>,
}

impl Names {
    fn thread(&self, id: ThreadId) -> Value {
        json!(self.threads.get(&id))
    }

    pub fn info(&self, info: &ThreadInfo) -> Value {
        json!({
            "id": self.thread(info.id), "graph": info.graph, "title": info.title,
            "root": info.root.map(|root| self.thread(root)), "namespace": info.namespace,
            "tenant": info.tenant, "head": info.head, "status": info.status, "error": info.error,
            "fence": info.fence, "owner": info.owner, "is leased": info.lease_until.is_some(),
            "forked from": info.forked_from.map(|(id, at)| (self.thread(id), at)),
        })
    }

    fn step(&self, step: &StepRow) -> Value {
        json!({
            "seq": step.seq, "kind": step.kind, "run": self.runs.get(&step.run),
            "version": step.schema_version, "delta": body(&step.delta),
            "frontier": step.frontier, "hash": step.hash,
        })
    }

    pub fn steps(&self, steps: &[StepRow]) -> Value {
        steps.iter().map(|step| self.step(step)).collect()
    }

    pub fn loaded(&self, loaded: &Loaded) -> Value {
        json!({
            "info": self.info(&loaded.info), "snapshot": loaded.snapshot.as_ref().map(snapshot),
            "steps": self.steps(&loaded.steps), "pending": pending(&loaded.pending),
        })
    }

    pub fn runs(&self, runs: &[RunRow]) -> Value {
        let run = |row: &RunRow| {
            let ended = row.ended_at.is_some();
            json!([self.runs.get(&row.id), row.number, row.status, ended])
        };
        runs.iter().map(run).collect()
    }

    pub fn open(&self, open: &[OpenInterrupt]) -> Value {
        let question = |row: &OpenInterrupt| {
            let payload = body(&row.payload);
            json!([self.thread(row.thread), row.step, row.task, row.kind, payload])
        };
        open.iter().map(question).collect()
    }

    pub fn dump(&self, dump: &ThreadDump) -> Value {
        let children: Vec<Value> = dump.children.iter().map(|child| self.dump(child)).collect();
        json!({
            "info": self.info(&dump.info), "snapshot": dump.snapshot.as_ref().map(snapshot),
            "returned": dump.returned.iter().map(snapshot).collect::<Vec<_>>(),
            "steps": self.steps(&dump.steps), "pending": pending(&dump.pending),
            "effects": effects(&dump.effects), "runs": self.runs(&dump.runs), "children": children,
            "texts": texts(&dump.blobs),
        })
    }

    /// A refusal: its kind and what it names, but no times and no words.
    pub fn error(&self, error: &Error) -> Value {
        let id = |id: &ThreadId| self.thread(*id);
        match error {
            Error::UnknownThread(thread) => json!(["unknown thread", id(thread)]),
            Error::ThreadExists(thread) => json!(["thread exists", id(thread)]),
            Error::UnknownStep { thread, seq, head } => {
                json!(["unknown step", id(thread), seq, head])
            }
            Error::BareReturn { thread, seq } => json!(["bare return", id(thread), seq]),
            Error::Busy { thread, owner, .. } => json!(["busy", id(thread), owner]),
            Error::Fenced { thread, token, current } => {
                json!(["fenced", id(thread), token, current])
            }
            Error::Conflict { thread, seq, head } => json!(["conflict", id(thread), seq, head]),
            Error::UnknownInterrupt(_) => json!(["unknown interrupt"]),
            Error::InterruptClosed(_) => json!(["interrupt closed"]),
            Error::UnknownEffect { thread, step, task } => {
                json!(["unknown effect", id(thread), step, task])
            }
            Error::Import(_) => json!(["import"]),
            other => json!(["surprise", other.to_string()]),
        }
    }

    pub fn result<T>(&self, result: &Result<T, Error>, view: impl FnOnce(&T) -> Value) -> Value {
        match result {
            Ok(value) => json!({ "ok": view(value) }),
            Err(error) => json!({ "refused": self.error(error) }),
        }
    }
}

fn body(encoded: &Encoded) -> Value {
    encoded.decode().unwrap_or_else(|error| json!(error.to_string()))
}

fn snapshot(row: &SnapshotRow) -> Value {
    json!([row.seq, row.schema_version, body(&row.state)])
}

fn texts(rows: &[BlobRow]) -> Value {
    let mut texts: Vec<_> =
        rows.iter().map(|row| (row.step, body(&row.body).to_string())).collect();
    texts.sort();
    json!(texts)
}

fn pending(rows: &[PendingRow]) -> Value {
    rows.iter().map(|row| json!([row.step, row.task, body(&row.body)])).collect()
}

/// Keys are left out: a question's is derived from the thread's id, and the request says which one it is.
pub fn effects(rows: &[EffectRow]) -> Value {
    let effect = |row: &EffectRow| {
        let outcome = row.outcome.as_ref().map(body);
        let ended = row.ended_at.is_some();
        json!([
            row.step,
            row.task,
            row.number,
            row.kind,
            row.status,
            row.name,
            body(&row.request),
            outcome,
            row.attempt,
            row.started_at.timestamp_micros(),
            ended
        ])
    };
    rows.iter().map(effect).collect()
}
