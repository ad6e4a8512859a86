//! The steps of a thread, as they are listed.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Threads;
use crate::Error;
use perihelion_engine::checkpoint::{self, StepKind, StepRow, Store, ThreadInfo, read_delta};
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_star::{GRAPH, GraphState};

/// One step of a thread as listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepView {
    pub step: u64,
    pub kind: StepKind,
    pub run_id: RunId,
    /// The nodes that ran, in frontier order; empty for an input.
    pub nodes: Vec<String>,
    /// The fields of the state that they wrote, each once.
    pub wrote: Vec<String>,
    /// The nodes that run next.
    pub next: Vec<String>,
    /// JSON bytes of what was written.
    pub bytes: usize,
    pub at: DateTime<Utc>,
}

impl StepView {
    fn new(row: &StepRow) -> Result<Self, checkpoint::Error> {
        let written = row.written()?;
        let mut wrote: Vec<String> = Vec::new();
        let fields = written.iter().filter_map(|one| one.update.as_object());
        for field in fields.flat_map(|fields| fields.keys()) {
            if !wrote.contains(field) {
                wrote.push(field.clone());
            }
        }
        let nodes = match row.kind {
            StepKind::Input => Vec::new(),
            _ => written.iter().map(|one| one.node.clone()).collect(),
        };
        Ok(Self {
            step: row.seq,
            kind: row.kind,
            run_id: row.run,
            nodes,
            wrote,
            next: row.frontier()?.tasks.into_iter().map(|task| task.node).collect(),
            bytes: row.delta.to_json_bytes()?.len(),
            at: row.at,
        })
    }
}

impl Threads {
    /// Returns steps before `before` (or from the head), newest first, at most `limit`.
    ///
    /// # Errors
    /// As [`Steps::history`](checkpoint::Steps::history); an unknown thread is an error, not an empty history.
    pub async fn history(
        &self,
        thread: ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<StepView>, Error> {
        let info = self.0.info(thread).await?;
        let rows = self.0.history(thread, before, limit).await?;
        if before.is_none() && limit > 0 {
            checkpoint::check_newest(self.0.as_ref(), &info, rows.first()).await?;
        }
        Ok(rows.iter().map(StepView::new).collect::<Result<_, _>>()?)
    }

    /// Returns the first question of a star's thread, where its first step is kept.
    ///
    /// # Errors
    /// As [`Steps::history`](checkpoint::Steps::history), and when the step cannot be read.
    pub async fn first_question(&self, info: &ThreadInfo) -> Result<Option<String>, Error> {
        if info.graph != GRAPH || info.head == 0 {
            return Ok(None);
        }
        let Some(row) = self.0.history(info.id, Some(2), 1).await?.pop() else { return Ok(None) };
        let written = read_delta::<GraphState>(info.id, &row)?;
        Ok(written.into_iter().find_map(|one| one.update.input_request))
    }
}

/// Returns the nodes that run next after the newest step.
pub(super) async fn next_nodes(
    store: &dyn Store,
    thread: ThreadId,
    head: u64,
) -> Result<Vec<String>, checkpoint::Error> {
    match store.history(thread, Some(head + 1), 1).await?.first() {
        Some(newest) => Ok(StepView::new(newest)?.next),
        None => Ok(Vec::new()),
    }
}
