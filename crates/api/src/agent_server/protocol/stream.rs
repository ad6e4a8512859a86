//! The events of a thread as server-sent events.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::super::{AppState, Refusal};
use super::events::{Event, Shown};
use super::follow::Follower;
use crate::event_stream::{self, Followed, following};
use crate::http::{Body, OfThread, ResponseResult};
use perihelion_service::Error;
use perihelion_service::kept::Run;

/// The channels there are; `custom:NAME` is a custom one too.
const CHANNELS: [&str; 9] = [
    "values",
    "updates",
    "messages",
    "tools",
    "lifecycle",
    "input",
    "checkpoints",
    "tasks",
    "custom",
];

/// A client's subscription to a thread.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(in crate::agent_server) struct Wanted {
    channels: Vec<String>,
    /// Positions in the tree of agents; all by default.
    namespaces: Option<Vec<Vec<String>>>,
    /// How far below these.
    depth: Option<u32>,
    /// The last received event, by its `seq`.
    pub(super) since: Option<u64>,
}

impl Wanted {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let is_known =
            |name: &String| CHANNELS.contains(&name.as_str()) || name.starts_with("custom:");
        match self.channels.iter().find(|name| !is_known(name)) {
            Some(unknown) => {
                let known = CHANNELS.join(", ");
                Err(Refusal::invalid(format!("{unknown:?} is not one of the channels {known}")))
            }
            None => Ok(()),
        }
    }

    /// Leaves out the events up to the last received one.
    pub(super) fn after(&mut self, seq: u64) {
        self.since = self.since.max(Some(seq));
    }

    /// Returns whether the client has all events of a run.
    pub(super) fn has_heard(&self, run: &Run) -> bool {
        self.since.is_some_and(|since| Shown::is_past(run, since))
    }

    pub(super) fn wants(&self, event: &Event) -> bool {
        let channel = event.method.split('.').next().unwrap_or_default();
        if !self.channels.iter().any(|name| name == channel)
            || self.since.is_some_and(|since| event.seq <= since)
        {
            return false;
        }
        let Some(places) = self.namespaces.as_ref().filter(|places| !places.is_empty()) else {
            return self.depth.is_none_or(|depth| event.params.namespace.len() <= depth as usize);
        };
        places.iter().any(|place| {
            event
                .params
                .namespace
                .strip_prefix(place.as_slice())
                .is_some_and(|below| self.depth.is_none_or(|depth| below.len() <= depth as usize))
        })
    }
}

pub(in crate::agent_server) async fn events(
    app: State<AppState>,
    OfThread(thread): OfThread,
    headers: HeaderMap,
    Body(mut wanted): Body<Wanted>,
) -> ResponseResult {
    wanted.check()?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    if let Some(seq) = last.and_then(|id| id.trim().parse().ok()) {
        wanted.after(seq);
    }
    let mut follower = Follower::new(&app.service, thread);
    follower.subscribe(String::new(), wanted);
    Ok(event_stream::response(HeaderMap::new(), following(&app.service, follower)))
}

impl Followed for Follower {
    type Error = Error;

    async fn advance(&mut self) -> Result<Option<Vec<Bytes>>, Error> {
        let event = self.next().await?;
        let id = event.seq.to_string();
        Ok(Some(vec![event_stream::event(event.method, &json!(event).to_string(), Some(&id))]))
    }
}
