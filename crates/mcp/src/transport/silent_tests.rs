//! For tests: a session with a server in this process that has no tools.

use std::sync::Arc;

use rmcp::{ServerHandler, ServiceExt as _};
use tokio::task::JoinHandle;

use super::http_session::SessionId;
use super::session::{Kind, Listener, Session};

struct Silent;

impl ServerHandler for Silent {}

/// Opens a session with it; its task ends when the session is closed.
pub(crate) async fn session() -> (Arc<Session>, JoinHandle<()>) {
    let (ours, theirs) = tokio::io::duplex(4096);
    let server = tokio::spawn(async move {
        if let Ok(running) = Silent.serve(theirs).await {
            let _ = running.waiting().await;
        }
    });
    let service = Listener::default().serve(ours).await.unwrap();
    (Arc::new(Session::new(service, Kind::Http(SessionId::default()))), server)
}
