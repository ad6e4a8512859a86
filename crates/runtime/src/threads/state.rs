//! The state of a thread, at its head or at any step.

use serde::Serialize;
use serde_json::{Value, json};

use super::Threads;
use crate::Error;
use perihelion_engine::checkpoint::{self, Loaded};
use perihelion_engine::ids::ThreadId;

/// A stored thread of any graph: the facts about its state that do not need the graph's types.
#[derive(Clone, Debug, Serialize)]
pub struct RawState {
    pub thread_id: ThreadId,
    pub graph: String,
    pub step: u64,
    pub next: Vec<String>,
    pub snapshot: Option<Value>,
    /// The step that it belongs to; 0 without one.
    pub snapshot_step: u64,
    /// The writes since, oldest first: only the graph itself can merge them.
    pub updates: Vec<Value>,
}

impl Threads {
    /// Reads a thread of any graph at a step, or at its head.
    ///
    /// # Errors
    /// As [`Steps::load`](checkpoint::Steps::load), and when a row cannot be read.
    pub async fn raw_state(&self, thread: ThreadId, at: Option<u64>) -> Result<RawState, Error> {
        let damaged = |error: serde_json::Error| checkpoint::Error::damaged(error);
        let Loaded { info, snapshot, steps, .. } = self.0.load(thread, at).await?;
        let mut raw = RawState {
            thread_id: info.id,
            graph: info.graph,
            step: at.unwrap_or(info.head),
            next: Vec::new(),
            snapshot: None,
            snapshot_step: 0,
            updates: Vec::new(),
        };
        if let Some(kept) = snapshot {
            raw.snapshot_step = kept.seq;
            raw.snapshot =
                Some(serde_json::from_slice(&kept.state.to_json_bytes()?).map_err(damaged)?);
        }
        for step in steps {
            raw.next = step.frontier()?.names();
            if step.seq <= raw.snapshot_step {
                continue;
            }
            for one in step.written()? {
                let update = json!({ "step": step.seq, "node": one.node, "update": one.update });
                raw.updates.push(update);
            }
        }
        Ok(raw)
    }
}
