//! Connections that a request took over, as a WebSocket does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::Request;
use axum::http::{Response, StatusCode};
use axum::{Extension, Router};
use hyper_util::rt::TokioIo;
use perihelion_http::{Bounds, Connection, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// S3.04: a server that ends lets what took a connection over say so, and ends after it.
#[tokio::test]
async fn a_draining_server_waits_for_upgraded_connections() {
    let stop = CancellationToken::new();
    let has_answered = Arc::new(AtomicBool::new(false));
    let ends = stop.clone();
    let answers = Arc::clone(&has_answered);
    let take_over = async move |Extension(guarded): Extension<Connection>, request: Request| {
        tokio::spawn(async move {
            let upgraded = hyper::upgrade::on(request).await.unwrap();
            ends.cancelled().await;
            // Whatever else there is to do has its turn first.
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            TokioIo::new(upgraded).write_all(b"it ends").await.unwrap();
            answers.store(true, Ordering::SeqCst);
            drop(guarded);
        });
        let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
        let answer = answer.header("connection", "upgrade").header("upgrade", "test");
        answer.body(axum::body::Body::empty()).unwrap()
    };
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), Bounds::default()).await.unwrap();
    let addr = server.addr();
    let router = Router::new().route("/", axum::routing::get(take_over));
    let serving = tokio::spawn(server.serve(router, stop.clone()));
    let mut client = TcpStream::connect(addr).await.unwrap();
    let head = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: test\r\n\r\n";
    client.write_all(head).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(client.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    stop.cancel();
    serving.await.unwrap();
    assert!(has_answered.load(Ordering::SeqCst), "the server ended before");
    let mut rest = String::new();
    client.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "it ends");
}
