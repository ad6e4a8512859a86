//! The protocol over a WebSocket: commands and subscriptions one way, answers and events the other.

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::IntoResponse as _;
use perihelion_http::Connection;
use perihelion_people::Scope;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::{AppState, Refusal};
use super::commands::{self, Command, Refused};
use super::follow::Follower;
use super::stream::Wanted;
use crate::auth::{Ends, Place, without_forged_users};
use crate::event_stream::HEARTBEAT;
use crate::hidden::ModelAddresses;
use crate::http::{self, OfThread, ResponseResult};
use crate::refused_socket;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

const LONGEST: usize = 16 << 20;

/// Subscriptions of one socket at most.
const MOST: usize = 32;

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
    follower: Follower,
}

impl Talk {
    fn new(app: AppState, thread: ThreadId, socket: WebSocket) -> Self {
        let addresses = ModelAddresses::of(&app.service.runtime().settings().models);
        let follower = Follower::new(&app.service, thread);
        Self { app, thread, addresses, socket, follower }
    }

    /// Serves until the client leaves, or the store fails: then the client reconnects and gets the missing events.
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
                event = self.follower.next() => match event {
                    Ok(event) => self.send(&json!(event).to_string()).await,
                    Err(error) => {
                        tracing::warn!(%error, "a subscription ended early; the client reconnects");
                        return;
                    }
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
        let read = http::json(text.as_bytes()).map_err(Refused::invalid).and_then(|mut sent| {
            without_forged_users(&mut sent, &Value::Null);
            http::typed("the command", sent).map_err(Refused::invalid)
        });
        let command: Command = match read {
            Ok(command) => command,
            Err(refused) => return commands::failure(None, &refused),
        };
        let id = command.id;
        let done = match command.method.as_str() {
            "subscription.subscribe" => http::typed("params", Value::Object(command.params))
                .map_err(Refused::invalid)
                .and_then(|wanted| self.subscribe(wanted))
                .map(|name| json!({ "subscription_id": name, "replayed_events": 0 })),
            "subscription.unsubscribe" => {
                let name = command.params.get("subscription_id").and_then(Value::as_str);
                let is_ended = name.is_some_and(|name| self.follower.unsubscribe(name));
                is_ended.then(|| json!({})).ok_or_else(Refused::unknown_subscription)
            }
            // A subscription ends with its socket: a new one gets all events again, with the same IDs.
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
        if self.follower.len() >= MOST {
            return Err(Refused::invalid(format!("a socket has at most {MOST} subscriptions")));
        }
        let name = Uuid::new_v4().to_string();
        self.follower.subscribe(name.clone(), wanted);
        Ok(name)
    }
}
