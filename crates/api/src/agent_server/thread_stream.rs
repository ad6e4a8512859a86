//! `GET /threads/{id}/stream`: the events of all runs of a thread, in the modes of each.
//!
//! It stays open between runs. Its events have the IDs of the runs' streams, so a client continues from its last event
//! on any process. Edits of the state are not in the event log: they are sent while they are made, without IDs.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use futures::{Stream, StreamExt as _, future, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::state::{Below, snapshot_at};
use super::stream::{LastEvent, named_modes};
use super::wire::{self, Modes, Wire};
use super::{AppState, Refusal};
use crate::event_stream::{self, Followed, following};
use crate::http::{Asked, OfThread, ResponseResult};
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::Run;
use perihelion_service::{BegunRuns, Edits, Error, Listener, Next, Service};

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Which {
    /// `run_modes` (the default): the events of the runs; `lifecycle`: their beginnings and ends; `state_update`: edits of
    /// the state. Several with commas, or repeated.
    stream_mode: Option<String>,
    /// The same, as the reference server calls it.
    stream_modes: Option<String>,
}

#[derive(Clone, Copy, Default)]
struct Shown {
    events: bool,
    runs: bool,
    edits: bool,
}

impl Shown {
    fn read(which: &Which) -> Result<Self, Refusal> {
        let given = [&which.stream_mode, &which.stream_modes].into_iter().flatten();
        let named = given.flat_map(|list| named_modes(list)).filter(|mode| !mode.is_empty());
        let mut shown = Self::default();
        for mode in named {
            match mode {
                "run_modes" => shown.events = true,
                "lifecycle" => shown.runs = true,
                "state_update" => shown.edits = true,
                other => {
                    return Err(Refusal::invalid(format!(
                        "{other:?} is not one of the modes run_modes, lifecycle, state_update"
                    )));
                }
            }
        }
        shown.events |= !shown.runs && !shown.edits;
        shown.runs |= shown.events;
        Ok(shown)
    }
}

pub(super) async fn follow(
    State(app): State<AppState>,
    OfThread(thread): OfThread,
    Asked(asked): Asked<Which>,
    headers: HeaderMap,
) -> ResponseResult {
    let shown = Shown::read(&asked)?;
    let edits = app.service.edits(thread).await?;
    let after = match LastEvent::read(&headers)? {
        LastEvent::Nothing => None,
        LastEvent::UpTo(id) => Some(After { id, is_now: false }),
        LastEvent::UpToNow => {
            let mark = app.service.runtime().store().event_position(thread).await?.last;
            Some(After { id: (mark, wire::BEFORE_ENDS), is_now: true })
        }
    };
    let service = app.service;
    let mut parts = Vec::new();
    if shown.runs {
        let runs = service.begun_runs(thread, after.map_or(0, |after| after.id.0));
        let followed = Runs { service: service.clone(), runs, now: None, after, shown };
        parts.push(until_end(following(&service, followed)));
    }
    if shown.edits {
        let followed = Edited { service: service.clone(), thread, edits };
        parts.push(until_end(following(&service, followed)));
    }
    // If one of them ends, the client must reconnect, and does so for both.
    let both = stream::select_all(parts).take_while(|bytes| future::ready(bytes.is_some()));
    Ok(event_stream::response(HeaderMap::new(), both.filter_map(future::ready)))
}

/// Adds `None` at the end of a stream.
fn until_end(
    part: impl Stream<Item = Bytes> + Send + 'static,
) -> stream::BoxStream<'static, Option<Bytes>> {
    part.map(Some).chain(stream::once(async { None })).boxed()
}

#[derive(Clone, Copy)]
struct After {
    id: (u64, u32),
    /// It wants future events, and has none.
    is_now: bool,
}

impl After {
    /// Returns whether the client has all of a run.
    fn is_past(self, run: &Run) -> bool {
        let last = run.last_event.filter(|_| run.status.is_terminal());
        last.is_some_and(|last| last < self.id.0 || (self.is_now && last == self.id.0))
    }
}

struct Runs {
    service: Service,
    runs: BegunRuns,
    /// The run that is followed, and what its client is shown of it.
    now: Option<(Listener, Modes)>,
    after: Option<After>,
    shown: Shown,
}

impl Followed for Runs {
    type Error = Error;

    async fn advance(&mut self) -> Result<Option<Vec<Bytes>>, Error> {
        let wires = match &mut self.now {
            Some((listener, modes)) => match listener.next().await? {
                Next::Change(heard) if self.shown.events => {
                    wire::events_of(&heard, listener.run(), modes)
                }
                Next::Change(_) => Vec::new(),
                Next::Ended(run) => {
                    let mut ends = vec![Wire::run_done(&run)];
                    if self.shown.events {
                        ends.splice(..0, Wire::ends(&run, modes, listener.shown()));
                    }
                    self.now = None;
                    ends
                }
                Next::Gone => {
                    self.now = None;
                    Vec::new()
                }
            },
            None => {
                let run = self.runs.next().await?;
                let is_new = |run: &Run| self.after.is_none_or(|after| !after.is_past(run));
                run.filter(is_new).map(|run| self.begin(run)).into_iter().collect()
            }
        };
        Ok(Some(Wire::bytes_after(&wires, self.after.map(|after| after.id))))
    }
}

impl Runs {
    fn begin(&mut self, run: Run) -> Wire {
        let begun = Wire::metadata(&run);
        let modes = Modes::of(&run);
        self.now = Some((self.service.listen_from_beginning(run), modes));
        begun
    }
}

/// The later edits of a thread.
struct Edited {
    service: Service,
    thread: ThreadId,
    edits: Edits,
}

impl Followed for Edited {
    type Error = Error;

    async fn advance(&mut self) -> Result<Option<Vec<Bytes>>, Error> {
        let mut events = Vec::new();
        for step in self.edits.look().await? {
            let state = snapshot_at(&self.service, self.thread, step, &Below::default()).await?;
            let data = json!({ "state": state, "thread_id": self.thread }).to_string();
            events.push(event_stream::event("state_update", &data, None));
        }
        if events.is_empty() {
            self.edits.called().await;
        }
        Ok(Some(events))
    }
}
