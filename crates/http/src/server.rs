//! The accept loop: header time limit, connection cap, no delay of small packets, an end that comes.
//!
//! `axum::serve` sets no timer, so that hyper's limit on slow headers never acts, and it has no cap.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::header;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tower::ServiceExt as _;

use crate::body::Paced;
use perihelion_clock as clock;

/// How long the loop rests when the system has no descriptors or memory for another connection.
const EXHAUSTED: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Open connections; more wait in the system's queue.
    pub connections: usize,
    /// How long the headers of a request may take.
    pub headers: Duration,
    /// How long the next piece of a request's body may take.
    pub body: Duration,
    /// How long the peer may leave an answer unread; on Linux, where the system counts it.
    pub write: Duration,
    /// How long requests under way may take when the server drains.
    pub drain: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        let headers = Duration::from_secs(10);
        let [body, write, drain] = [30, 60, 10].map(Duration::from_secs);
        Self { connections: 16_384, headers, body, write, drain }
    }
}

/// The share of an open connection in the limits; a part that outlives its requests, such as a socket, has a copy.
#[derive(Clone, Debug)]
pub struct Connection(#[expect(dead_code, reason = "only held")] Arc<Taken>);

#[derive(Debug)]
struct Taken {
    _permit: OwnedSemaphorePermit,
    _tracked: TaskTrackerToken,
}

/// Why a server could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {addr}: {source}; choose another address or port")]
    Listen { addr: SocketAddr, source: std::io::Error },
}

#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    addr: SocketAddr,
    bounds: Bounds,
}

impl Server {
    /// Binds an address; port 0 takes a free one.
    pub async fn bind(addr: SocketAddr, bounds: Bounds) -> Result<Self, Error> {
        let refused = |source| Error::Listen { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(refused)?;
        let addr = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, addr, bounds })
    }

    pub fn on(listener: TcpListener, bounds: Bounds) -> std::io::Result<Self> {
        let addr = listener.local_addr()?;
        Ok(Self { listener, addr, bounds })
    }

    /// Serves until `stopped` resolves, as [`Server::serve`] does.
    pub async fn serve_until(self, router: Router, stopped: impl Future<Output = ()>) {
        let stop = CancellationToken::new();
        let mut serving = std::pin::pin!(self.serve(router, stop.clone()));
        tokio::select! {
            () = serving.as_mut() => {}
            () = stopped => {
                stop.cancel();
                serving.await;
            }
        }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `stop` is cancelled, then lets requests under way end within the bound.
    ///
    /// Streams must watch `stop` themselves: one that does not is cut off at the limit.
    pub async fn serve(self, router: Router, stop: CancellationToken) {
        let connections = TaskTracker::new();
        let permits = Arc::new(Semaphore::new(self.bounds.connections));
        loop {
            let permit = tokio::select! {
                () = stop.cancelled() => break,
                permit = Arc::clone(&permits).acquire_owned() => permit,
            };
            // The semaphore is never closed.
            let Ok(permit) = permit else { break };
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    // Small events must not wait for a full packet; a socket that refuses is closed already.
                    let _ = stream.set_nodelay(true);
                    #[cfg(target_os = "linux")]
                    let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(self.bounds.write));
                    let router = router.clone();
                    let taken = Taken { _permit: permit, _tracked: connections.token() };
                    let guarded = Connection(Arc::new(taken));
                    tokio::spawn(connection(stream, router, self.bounds, stop.clone(), guarded));
                }
                Err(error) if is_of_peer(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted; trying again");
                    clock::sleep(EXHAUSTED).await;
                }
            }
        }
        drop(self.listener);
        connections.close();
        if tokio::time::timeout(self.bounds.drain, connections.wait()).await.is_err() {
            tracing::warn!(
                left = connections.len(),
                "connections were cut off at the end of the drain"
            );
        }
    }
}

async fn connection(
    stream: TcpStream,
    router: Router,
    bounds: Bounds,
    stop: CancellationToken,
    guarded: Connection,
) {
    let hands_over = guarded.clone();
    let paced = router.map_request(move |mut request: hyper::Request<Incoming>| {
        // Only what takes the connection over outlives it.
        if request.headers().contains_key(header::UPGRADE) {
            request.extensions_mut().insert(hands_over.clone());
        }
        request.map(|body| Paced::new(body, bounds.body))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.headers)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(paced))
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(bounds.drain, connection.as_mut()).await {
                Ok(ended) => ended,
                Err(_) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
    drop(guarded);
}

fn is_of_peer(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
