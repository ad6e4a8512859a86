//! The steps of a thread, as they are listed.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Threads;
use crate::Error;
use perihelion_engine::checkpoint::{self, StepKind, StepRow, Store};
use perihelion_engine::graph::StoredWrite;
use perihelion_engine::ids::{RunId, ThreadId};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepView {
    pub step: u64,
    pub kind: StepKind,
    pub run_id: RunId,
    /// The nodes that ran, in frontier order; empty for an input.
    pub nodes: Vec<String>,
    /// The fields of the state that they wrote, each once.
    pub wrote: Vec<String>,
    pub next: Vec<String>,
    /// JSON bytes of the writes.
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
            next: row.frontier()?.names(),
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

    /// Returns the text of a thread's first question or message, if its first step was not dropped.
    ///
    /// # Errors
    /// As [`Steps::history`](checkpoint::Steps::history), and when the step cannot be read.
    pub async fn first_question(&self, thread: ThreadId) -> Result<Option<String>, Error> {
        let Some(row) = self.0.history(thread, Some(2), 1).await?.pop() else { return Ok(None) };
        let text = |write: StoredWrite| {
            let question = write.update.get("input_request");
            let message = write.update.pointer("/messages/0/content");
            question.or(message)?.as_str().map(str::to_owned)
        };
        Ok(row.written()?.into_iter().find_map(text))
    }
}

pub(crate) async fn next_nodes(
    store: &dyn Store,
    thread: ThreadId,
    head: u64,
) -> Result<Vec<String>, checkpoint::Error> {
    match store.history(thread, Some(head + 1), 1).await?.first() {
        Some(newest) => Ok(StepView::new(newest)?.next),
        None => Ok(Vec::new()),
    }
}
