//! WebSockets that are refused.
//!
//! A page gets no reason if the upgrade to a socket fails, and retries. So the socket is opened and closed at once, by
//! 4000 and the status that the answer had, as the clients of the thread protocol read it.

use std::time::Duration;

use axum::body;
use axum::extract::ws::{CloseFrame, Message, WebSocketUpgrade};
use axum::extract::{FromRequestParts as _, Request};
use axum::response::Response;
use perihelion_http::Connection;
use serde_json::Value;

use perihelion_engine::clock;

/// Bytes of a refusal that is read at most.
const LONGEST: usize = 1 << 16;

/// Bytes of a reason at most, by the protocol.
const REASON: usize = 123;

/// Bytes that a rejected peer can send.
const HEARD: usize = 1 << 12;

/// How long a peer has to read why.
const PATIENCE: Duration = Duration::from_secs(5);

/// Refuses a request: one for a socket by a socket that closes, any other one as it is.
pub(super) async fn answer(request: Request, refusal: Response) -> Response {
    let (mut parts, _) = request.into_parts();
    let connection = parts.extensions.get::<Connection>().cloned();
    match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => close(upgrade, connection, refusal).await,
        Err(_) => refusal,
    }
}

pub(super) async fn close(
    upgrade: WebSocketUpgrade,
    connection: Option<Connection>,
    refusal: Response,
) -> Response {
    let code = 4_000 + refusal.status().as_u16();
    let reason = reason(refusal).await;
    let upgrade = upgrade.max_message_size(HEARD).max_frame_size(HEARD);
    upgrade.on_upgrade(move |mut socket| async move {
        let _connection = connection;
        let close = CloseFrame { code, reason: reason.into() };
        let goodbye = async {
            if socket.send(Message::Close(Some(close))).await.is_ok() {
                // It has read it when it closes, too.
                while let Some(Ok(_)) = socket.recv().await {}
            }
        };
        tokio::select! {
            () = goodbye => {}
            () = clock::sleep(PATIENCE) => {}
        }
    })
}

/// Reads the reason of a rejection, up to the available space.
async fn reason(refusal: Response) -> String {
    let read = body::to_bytes(refusal.into_body(), LONGEST).await.unwrap_or_default();
    let shown: Value = serde_json::from_slice(&read).unwrap_or_default();
    let why = shown["detail"].as_str().unwrap_or_default();
    why.get(..why.floor_char_boundary(REASON)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use axum::Json;
    use axum::response::IntoResponse as _;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_close_reason_is_cut_at_the_length_that_the_protocol_allows() {
        let of = async |why: &str| reason(Json(json!({ "detail": why })).into_response()).await;
        assert_eq!(of("log in").await, "log in");
        assert_eq!(of(&"é".repeat(100)).await, "é".repeat(61));
        assert_eq!(reason("no JSON".into_response()).await, "");
    }
}
