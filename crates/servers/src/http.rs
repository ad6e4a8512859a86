//! Serves an MCP server over streamable HTTP, on loopback, to local callers.
//!
//! There is no authentication, so two parts of each request are checked: the host name, against pages that let their
//! own name point here, and the page's origin, if any.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use perihelion_http::{Bounds, Server};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio::net::TcpListener;

use super::Error;

/// Names under which this machine may be called.
const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Serves until the process must end; `ready` gets the address before the first request is accepted.
///
/// # Errors
/// [`Error::NotLoopback`] for an address that other machines can reach, [`Error::Listen`] if it cannot be used.
pub async fn serve<H: ServerHandler + Clone>(
    server: H,
    addr: SocketAddr,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Error> {
    if !addr.ip().is_loopback() {
        return Err(Error::NotLoopback(addr));
    }
    let listen = |source| Error::Listen { addr, source };
    let listener = TcpListener::bind(addr).await.map_err(listen)?;
    let addr = listener.local_addr().map_err(listen)?;
    // Other pages on this machine are rejected too: their developers did not write all of their code.
    let origins = HOSTS.map(|host| {
        if host.contains(':') {
            format!("http://[{host}]:{}", addr.port())
        } else {
            format!("http://{host}:{}", addr.port())
        }
    });
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(HOSTS)
        .with_allowed_origins(origins);
    let ended = config.cancellation_token.clone();
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    ready(addr);
    let stopped = async move {
        // Where no signal can be waited for, the process ends by the signal itself.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        // Streams that wait for news would otherwise keep the connections open.
        ended.cancel();
    };
    let router = Router::new().nest_service("/mcp", service);
    let server = Server::on(listener, Bounds::default()).map_err(listen)?;
    server.serve_until(router, stopped).await;
    Ok(())
}
