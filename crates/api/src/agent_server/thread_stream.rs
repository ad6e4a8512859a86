//! `GET /threads/{id}/stream`: the events of all runs of a thread, in the modes of each.
//!
//! It stays open between runs. Its events have the IDs of the runs' streams, so a client continues from its last event
//! on any process. Edits of the state are not in the event log: they are sent while they are made, without IDs.

use std::collections::VecDeque;

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
use crate::event_stream;
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
    let followed = Followed {
        runs: app.service.begun_runs(thread, after.map_or(0, |after| after.id.0)),
        service: app.service.clone(),
        now: None,
        after,
        shown,
        ready: VecDeque::new(),
    };
    let runs = stream::unfold(followed, |mut followed| async {
        let bytes = followed.next().await?;
        Some((bytes, followed))
    });
    let mut parts = Vec::new();
    if shown.runs {
        parts.push(until_end(runs));
    }
    if shown.edits {
        parts.push(until_end(followed_edits(app.service, thread, edits)));
    }
    // Where one of them ends the client is to follow on, and does so for both.
    let both = stream::select_all(parts).take_while(|bytes| future::ready(bytes.is_some()));
    Ok(event_stream::response(HeaderMap::new(), both.filter_map(future::ready)))
}

/// Says `None` at the end of a stream.
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

struct Followed {
    service: Service,
    runs: BegunRuns,
    /// The run that is followed, and what its client is shown of it.
    now: Option<(Listener, Modes)>,
    after: Option<After>,
    shown: Shown,
    ready: VecDeque<Bytes>,
}

impl Followed {
    /// Waits for the next bytes; `None` when this process ends, or the store fails: the client follows on.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            let stop = self.service.stop().clone();
            let moved = tokio::select! {
                moved = self.advance() => moved,
                () = stop.cancelled() => return None,
            };
            if let Err(error) = moved {
                tracing::warn!(%error, "a stream ended early; the client can continue after its last event");
                return None;
            }
        }
    }

    /// Receives one event; it can be dropped at any time without losing events.
    async fn advance(&mut self) -> Result<(), Error> {
        let Some((listener, modes)) = &mut self.now else {
            let Some(run) = self.runs.next().await? else { return Ok(()) };
            if self.after.is_none_or(|after| !after.is_past(&run)) {
                self.begin(run);
            }
            return Ok(());
        };
        match listener.next().await? {
            Next::Change(heard) if self.shown.events => {
                let wires = wire::events_of(&heard, listener.run(), modes);
                send(&mut self.ready, self.after, &wires);
            }
            Next::Change(_) => {}
            Next::Ended(run) => {
                let mut ends = vec![Wire::run_done(&run)];
                if self.shown.events {
                    ends.splice(..0, Wire::ends(&run, modes, listener.shown()));
                }
                send(&mut self.ready, self.after, &ends);
                self.now = None;
            }
            Next::Gone => self.now = None,
        }
        Ok(())
    }

    fn begin(&mut self, run: Run) {
        let modes = Modes::of(&run);
        send(&mut self.ready, self.after, &[Wire::metadata(&run)]);
        self.now = Some((self.service.listen_from_beginning(run), modes));
    }
}

/// Sends later edits, until this process ends or the store fails.
fn followed_edits(
    service: Service,
    thread: ThreadId,
    edits: Edits,
) -> impl Stream<Item = Bytes> + Send {
    let looks = stream::unfold((service, edits), move |(service, mut edits)| async move {
        let stop = service.stop().clone();
        let look = async {
            loop {
                let mut events = Vec::new();
                for step in edits.look().await? {
                    let state = snapshot_at(&service, thread, step, &Below::default()).await?;
                    let data = json!({ "state": state, "thread_id": thread }).to_string();
                    events.push(event_stream::event("state_update", &data, None));
                }
                if !events.is_empty() {
                    return Ok::<_, Error>(events);
                }
                edits.called().await;
            }
        };
        let found = tokio::select! {
            found = look => found,
            () = stop.cancelled() => return None,
        };
        match found {
            Ok(events) => Some((stream::iter(events), (service, edits))),
            Err(error) => {
                tracing::warn!(%error, "a stream of edits ended early; the client can reconnect");
                None
            }
        }
    });
    looks.flatten()
}

fn send(ready: &mut VecDeque<Bytes>, after: Option<After>, wires: &[Wire]) {
    let new = wires.iter().filter(|wire| after.is_none_or(|after| wire.id > after.id));
    ready.extend(new.map(Wire::bytes));
}
