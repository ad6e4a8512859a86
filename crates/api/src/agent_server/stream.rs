//! Streams of runs: fed from a cursor over the thread's log, so a slow reader uses only its buffer.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use futures::{StreamExt as _, future, stream};
use perihelion_people::Scope;
use schemars::JsonSchema;
use serde::Deserialize;

use super::accept::{Accepted, accept};
use super::wire::{self, Modes, RunBody, Wire};
use super::{AppState, Refusal};
use crate::event_stream::{self, Followed};
use crate::http::{Asked, Body, MaybeOfThread, OfRun, ResponseResult};
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::{Cancel, Run};
use perihelion_service::{Error, Listener, Next, Service, StartAt};

/// Creates a run and follows it from its beginning.
pub(super) async fn create(
    app: State<AppState>,
    MaybeOfThread(thread): MaybeOfThread,
    Body(body): Body<RunBody>,
) -> ResponseResult {
    let Accepted { run, modes, stops_with_client } = accept(&app, thread, body, true).await?;
    response(&app, run, modes, LastEvent::Nothing, stops_with_client).await
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Join {
    stream_mode: Option<String>,
    cancel_on_disconnect: Option<String>,
}

pub(super) async fn join(
    app: State<AppState>,
    OfRun(thread, run): OfRun,
    Asked(asked): Asked<Join>,
    headers: HeaderMap,
) -> ResponseResult {
    let run = app.service.run(thread, run).await?;
    joined(&app, run, asked, &headers).await
}

/// Reads the modes of a list as clients write it behind the question mark.
pub(super) fn named_modes(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(|mode| mode.trim().trim_matches(['[', ']', '"']))
}

/// Follows an existing run, from the client's last event.
pub(super) async fn joined(
    app: &AppState,
    run: Run,
    asked: Join,
    headers: &HeaderMap,
) -> ResponseResult {
    let modes = match asked.stream_mode.as_deref() {
        None | Some("") => Modes::of(&run),
        Some(list) => Modes::read(named_modes(list).map(str::to_owned).collect())?,
    };
    let heard = LastEvent::read(headers)?;
    let stops = asked
        .cancel_on_disconnect
        .is_some_and(|word| matches!(word.as_str(), "1" | "true" | "True"));
    if stops {
        // The request is a look, and what it leaves behind is not.
        app.service.permit(Scope::Run)?;
        app.service.user_on(ThreadId(run.thread), None).await?;
    }
    response(app, run, modes, heard, stops).await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastEvent {
    Nothing,
    UpTo((u64, u32)),
    /// None of the past ones; it wants future events.
    UpToNow,
}

impl LastEvent {
    /// Reads the header with a client's last event; `-1` means none.
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, Refusal> {
        let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::trim);
        match last {
            None | Some("") => Ok(Self::UpToNow),
            Some("-1") => Ok(Self::Nothing),
            Some(id) => Wire::read_id(id).map(Self::UpTo).ok_or_else(|| {
                Refusal::invalid(format!("Last-Event-ID is not an ID of this server: {id}"))
            }),
        }
    }
}

/// Returns the headers by which clients find a run again.
pub(super) fn places(run: &Run, then: Option<&str>) -> HeaderMap {
    let at = format!("/threads/{}/runs/{}", run.thread, run.id);
    let mut headers = HeaderMap::new();
    let mut put = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    if let Some(then) = then {
        put(header::LOCATION, format!("{at}/{then}"));
    }
    put(header::CONTENT_LOCATION, at);
    headers
}

async fn response(
    app: &AppState,
    run: Run,
    modes: Modes,
    heard: LastEvent,
    stops_with_client: bool,
) -> ResponseResult {
    let headers = places(&run, Some("stream"));
    let guard = stops_with_client.then(|| StopWithClient::new(app.service.clone(), &run));
    let (from, after) = match heard {
        LastEvent::Nothing => (StartAt::Beginning, None),
        // The event itself may have been heard in part.
        LastEvent::UpTo(id) => (StartAt::After(id.0.saturating_sub(1)), Some(id)),
        LastEvent::UpToNow => (StartAt::Now, None),
    };
    let listener = app.service.listen(run, from).await?;
    let is_announced = heard != LastEvent::Nothing;
    let followed = Following { listener, modes, after, is_announced, is_over: false };
    // However the stream ended, the client is still there.
    let end = stream::once(async move {
        guard.into_iter().for_each(StopWithClient::disarm);
        None
    });
    let events = event_stream::following(&app.service, followed);
    let events = events.chain(end.filter_map(future::ready));
    Ok(event_stream::response(headers, events))
}

struct Following {
    listener: Listener,
    modes: Modes,
    /// The events that the client has.
    after: Option<(u64, u32)>,
    /// The client knows which run this is.
    is_announced: bool,
    is_over: bool,
}

impl Followed for Following {
    type Error = Error;

    async fn advance(&mut self) -> Result<Option<Vec<Bytes>>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let mut wires = Vec::new();
        // Where in the log it begins is known when it has begun: before that its first event has no id.
        if !self.is_announced && self.listener.run().first_event.is_some() {
            self.announce(&mut wires);
        } else {
            let next = self.listener.next().await?;
            if !self.is_announced && !matches!(next, Next::Gone) {
                self.announce(&mut wires);
            }
            self.is_over = !matches!(next, Next::Change(_));
            match next {
                Next::Change(heard) => {
                    wires.extend(wire::events_of(&heard, self.listener.run(), &self.modes));
                }
                Next::Ended(run) => {
                    wires.extend(Wire::ends(&run, &self.modes, self.listener.shown()));
                }
                Next::Gone => {}
            }
        }
        Ok(Some(Wire::bytes_after(&wires, self.after)))
    }
}

impl Following {
    fn announce(&mut self, wires: &mut Vec<Wire>) {
        self.is_announced = true;
        wires.push(Wire::metadata(self.listener.run()));
    }
}

/// Stops a run when the client that wants that goes away before its end.
pub(super) struct StopWithClient(Option<(Service, Run)>);

impl StopWithClient {
    pub(super) fn new(service: Service, run: &Run) -> Self {
        Self(Some((service, run.clone())))
    }

    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for StopWithClient {
    fn drop(&mut self) {
        let Some((service, run)) = self.0.take() else { return };
        tokio::spawn(async move {
            if let Err(error) = service.cancel(&run, Cancel::Interrupt).await {
                tracing::warn!(%error, run = %run.id, "could not stop a run after its client disconnected");
            }
        });
    }
}
