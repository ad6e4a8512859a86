//! The states of a thread, newest first.
//!
//! They are sent one by one as they are read, so that an answer of a thousand takes the memory of one. Deliberately absent: an
//! end before all were sent that a client asked for, which it would take for the thread's beginning.

use std::collections::VecDeque;

use axum::body::{Body as Sent, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse as _;
use futures::{StreamExt as _, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::assistants::has_all;
use super::wire::{self, Fields};
use super::{AppState, Refusal};
use crate::http::{Asked, Body, OfThread, ResponseResult};
use perihelion_engine::checkpoint::{StepRow, ThreadInfo};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::InterruptView;
use perihelion_service::{Checkpoint, CheckpointIds, Error, Service, StepRun};

/// States of one answer at most.
const MOST: u32 = 1_000;

/// Steps that are read at a time.
const AT_ONCE: u32 = 16;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct History {
    limit: Option<u32>,
    before: Option<Value>,
    /// The required metadata of the states.
    metadata: Option<Map<String, Value>>,
    checkpoint: Option<Value>,
    select: Option<Vec<String>>,
}

pub(super) async fn list(
    State(app): State<AppState>,
    OfThread(thread): OfThread,
    Body(asked): Body<History>,
) -> ResponseResult {
    answer(app.service, thread, asked).await
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct HistoryQuery {
    limit: Option<u32>,
    before: Option<String>,
}

pub(super) async fn list_by_query(
    State(app): State<AppState>,
    OfThread(thread): OfThread,
    Asked(asked): Asked<HistoryQuery>,
) -> ResponseResult {
    let before = asked.before.map(Value::String);
    let asked = History { limit: asked.limit, before, ..History::default() };
    answer(app.service, thread, asked).await
}

/// Streams a list while it is read, each state in a line of its own; an unreadable list is rejected.
async fn answer(service: Service, thread: ThreadId, asked: History) -> ResponseResult {
    let info = service.info(thread).await?;
    let mut listed = Listed::open(service, info, asked).await?;
    let first = listed.next().await?.map_or_else(String::new, |shown| shown.to_string());
    let begin = stream::once(async move { Ok(Bytes::from(format!("[{first}\n"))) });
    let rest = stream::try_unfold(listed, |mut listed| async {
        let shown = listed.next().await.inspect_err(|error| {
            tracing::warn!(%error, "a list of states ended early");
        })?;
        Ok::<_, Error>(shown.map(|shown| (Bytes::from(format!(",{shown}\n")), listed)))
    });
    let end = stream::once(async { Ok(Bytes::from_static(b"]")) });
    let body = Sent::from_stream(begin.chain(rest).chain(end));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// The states that a client asked for and was not sent yet.
struct Listed {
    service: Service,
    info: ThreadInfo,
    ids: CheckpointIds,
    open: Vec<InterruptView>,
    asking: Vec<u32>,
    metadata: Value,
    fields: Fields,
    left: u32,
    /// The step before which the next ones are read; `None` includes the newest.
    before: Option<u64>,
    /// The steps that were read, newest first.
    read: VecDeque<Checkpoint>,
    /// The step that was passed last, which has the writes of the previous step's tasks.
    newer: Option<Checkpoint>,
}

impl Listed {
    async fn open(service: Service, info: ThreadInfo, asked: History) -> Result<Self, Refusal> {
        let thread = info.id;
        let ids = service.checkpoint_ids(thread).await?;
        let step_of =
            |id: &str| ids.step(id).ok_or_else(|| Error::UnknownCheckpoint(id.to_owned()));
        let upto = asked.checkpoint.as_ref().and_then(wire::named_checkpoint);
        let before = match asked.before.as_ref().filter(|before| !before.is_null()) {
            None => upto.map(step_of).transpose()?.map(|step| step + 1),
            Some(given) => {
                let id = wire::named_checkpoint(given).ok_or_else(|| {
                    Refusal::invalid("before must be a checkpoint, its id, or a configuration")
                })?;
                Some(step_of(id)?)
            }
        };
        let metadata = Value::Object(asked.metadata.unwrap_or_default());
        let (open, asking) = service.open_questions(&info).await?;
        Ok(Self {
            service,
            info,
            ids,
            open,
            asking,
            metadata,
            fields: Fields(asked.select.unwrap_or_default()),
            left: asked.limit.unwrap_or(10).clamp(1, MOST),
            before,
            read: VecDeque::new(),
            newer: None,
        })
    }

    async fn next(&mut self) -> Result<Option<Value>, Error> {
        while self.left > 0 {
            let Some(at) = self.read.pop_front() else {
                if self.read_on().await? {
                    continue;
                }
                break;
            };
            let shown =
                if self.is_wanted(&at.row, at.run) { Some(self.shown(&at).await?) } else { None };
            self.newer = Some(at);
            if shown.is_some() {
                self.left -= 1;
                return Ok(shown);
            }
        }
        Ok(None)
    }

    fn is_wanted(&self, row: &StepRow, run: Option<StepRun>) -> bool {
        has_all(&wire::step_metadata(&self.info.graph, self.info.id, row, run), &self.metadata)
    }

    /// Reads the next steps until one matches; returns whether there are any.
    async fn read_on(&mut self) -> Result<bool, Error> {
        let thread = self.info.id;
        loop {
            let rows = self.service.runtime().store().history(thread, self.before, AT_ONCE).await?;
            let Some(oldest) = rows.last() else { return Ok(false) };
            self.before = Some(oldest.seq);
            let runs = self.service.runs_of_steps(&self.ids, &rows).await?;
            if rows.iter().zip(runs).any(|(row, run)| self.is_wanted(row, run)) {
                self.read = self.service.folded(thread, rows).await?.into();
                return Ok(true);
            }
        }
    }

    async fn shown(&self, at: &Checkpoint) -> Result<Value, Error> {
        let thread = self.info.id;
        let step = at.row.seq;
        if step == self.info.head {
            let shown = wire::snapshot(thread, at, &self.open, &self.asking, None);
            return Ok(self.fields.only(shown));
        }
        let newer = self.newer.as_ref().filter(|newer| newer.row.seq == step + 1);
        let shown = match newer {
            Some(newer) => wire::snapshot(thread, at, &[], &[], Some(newer)),
            None => {
                let newer = self.service.checkpoint(thread, step + 1).await.ok();
                wire::snapshot(thread, at, &[], &[], newer.as_ref())
            }
        };
        Ok(self.fields.only(shown))
    }
}
