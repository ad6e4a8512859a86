//! The protocol over a WebSocket: commands and subscriptions one way, answers and events the other.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::IntoResponse as _;
use perihelion_http::Connection;
use perihelion_people::Scope;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::super::{AppState, Refusal};
use super::commands::{self, Command, Refused};
use super::follow::Follower;
use super::stream::Wanted;
use crate::auth::Ends;
use crate::event_stream::HEARTBEAT;
use crate::hidden::ModelAddresses;
use crate::http::{OfThread, Place, ResponseResult};
use crate::refused_socket;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

/// Longest command.
const LONGEST: usize = 16 << 20;

/// Subscriptions of one socket at most.
const MOST: usize = 32;

/// Events that wait for a socket, of each subscription, before its follower waits too.
const BUFFER: usize = 16;

pub(in crate::agent_server) async fn open(
    State(app): State<AppState>,
    thread: Result<OfThread, Refusal>,
    ends: Option<Extension<Ends>>,
    place: Option<Extension<Place>>,
    connection: Option<Extension<Connection>>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> ResponseResult {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(error) => {
            // Where no socket is opened, a thread is refused as on every other route.
            thread?;
            let why = format!("open a WebSocket or send a POST request: {error}");
            return Err(Refusal(axum::http::StatusCode::UPGRADE_REQUIRED, why));
        }
    };
    let thread = match thread {
        Ok(OfThread(thread)) => thread,
        Err(refusal) => {
            let connection = connection.map(|Extension(connection)| connection);
            let refusal = refusal.into_response();
            return Ok(refused_socket::close(upgrade, connection, refusal).await);
        }
    };
    let upgrade = upgrade.max_message_size(LONGEST).max_frame_size(LONGEST);
    Ok(upgrade.on_upgrade(move |socket| async move {
        // Taken for as long as the socket is open.
        let _guard = (place, connection);
        let mut talk = Talk::new(app.clone(), thread, socket);
        let ended = async {
            match ends {
                Some(Extension(ends)) => ends.wait().await,
                None => std::future::pending().await,
            }
        };
        let stop = app.service.stop().clone();
        let close = tokio::select! {
            () = talk.run() => return,
            () = ended => CloseFrame { code: 4401, reason: "the credentials are no longer valid".into() },
            // Its client comes back, to another process or this one again.
            () = stop.cancelled() => CloseFrame { code: 1012, reason: "the server is shutting down".into() },
        };
        // A peer that is gone needs no goodbye.
        let _ = talk.socket.send(Message::Close(Some(close))).await;
    }))
}

struct Talk {
    app: AppState,
    thread: ThreadId,
    addresses: ModelAddresses,
    socket: WebSocket,
    subscriptions: BTreeMap<String, AbortOnDropHandle<()>>,
    events: mpsc::Receiver<String>,
    sender: mpsc::Sender<String>,
}

impl Talk {
    fn new(app: AppState, thread: ThreadId, socket: WebSocket) -> Self {
        let (sender, events) = mpsc::channel(BUFFER);
        let addresses = ModelAddresses::of(&app.service.runtime().settings().models);
        let subscriptions = BTreeMap::new();
        Self { app, thread, addresses, socket, subscriptions, events, sender }
    }

    /// Talks until the client goes, or a subscription fails: then the client comes back and hears what it lacks.
    async fn run(&mut self) {
        loop {
            let sent = tokio::select! {
                heard = self.socket.recv() => match heard {
                    Some(Ok(Message::Text(text))) => {
                        let answer = self.hear(text.as_str()).await;
                        self.send(&answer.to_string()).await
                    }
                    Some(Ok(Message::Close(_))) | Some(Err(_)) | None => return,
                    Some(Ok(Message::Binary(_))) => {
                        let why = Refused::invalid("commands are sent as text");
                        self.send(&commands::failure(None, &why).to_string()).await
                    }
                    Some(Ok(_)) => Ok(()),
                },
                event = self.events.recv() => match event {
                    Some(event) if event.is_empty() => return,
                    Some(event) => self.send(&event).await,
                    None => return,
                },
                () = clock::sleep(HEARTBEAT) => self.socket.send(Message::Ping(Default::default())).await,
            };
            if sent.is_err() {
                return;
            }
        }
    }

    async fn send(&mut self, text: &str) -> Result<(), axum::Error> {
        let text = self.addresses.hidden(text).into_owned();
        self.socket.send(Message::Text(text.into())).await
    }

    async fn hear(&mut self, text: &str) -> Value {
        let command: Command = match serde_json::from_str(text) {
            Ok(command) => command,
            Err(error) => return commands::failure(None, &Refused::invalid(error.to_string())),
        };
        let id = command.id;
        let done = match command.method.as_str() {
            "subscription.subscribe" => serde_json::from_value(Value::Object(command.params))
                .map_err(|error| Refused::invalid(error.to_string()))
                .and_then(|wanted| self.subscribe(wanted))
                .map(|name| json!({ "subscription_id": name, "replayed_events": 0 })),
            "subscription.unsubscribe" => {
                let name = command.params.get("subscription_id").and_then(Value::as_str);
                let ended = name.and_then(|name| self.subscriptions.remove(name));
                ended.map(|_| json!({})).ok_or_else(Refused::unknown_subscription)
            }
            // Nothing of a subscription outlives its socket: a new one hears everything again, under the same ids.
            "subscription.reconnect" => Ok(json!({ "restored": false })),
            // Looking needs another scope than moving; the request was a look.
            "state.get" | "state.listCheckpoints" | "agent.getTree" => {
                return commands::answered(&self.app, self.thread, &command).await;
            }
            _ => match self.app.service.permit(Scope::Run) {
                Ok(()) => return commands::answered(&self.app, self.thread, &command).await,
                Err(error) => Err(error.into()),
            },
        };
        match done {
            Ok(result) => commands::success(id, result),
            Err(refused) => commands::failure(Some(id), &refused),
        }
    }

    fn subscribe(&mut self, wanted: Wanted) -> Result<String, Refused> {
        wanted.check()?;
        if self.subscriptions.len() >= MOST {
            return Err(Refused::invalid(format!("a socket has at most {MOST} subscriptions")));
        }
        let mut follower = Follower::new(&self.app.service, self.thread, wanted);
        let to = self.sender.clone();
        let task = tokio::spawn(async move {
            loop {
                let event = match follower.next().await {
                    Ok(event) => json!(event).to_string(),
                    Err(error) => {
                        tracing::warn!(%error, "a subscription ended early; the client reconnects");
                        String::new()
                    }
                };
                let is_end = event.is_empty();
                if to.send(event).await.is_err() || is_end {
                    return;
                }
            }
        });
        let name = Uuid::new_v4().to_string();
        self.subscriptions.insert(name.clone(), AbortOnDropHandle::new(task));
        Ok(name)
    }
}
