//! Peers that take their time.

use std::time::Duration;

use axum::Router;
use perihelion_http::{Bounds, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// S3.04: a connection whose headers do not come to their end is closed, and others are served meanwhile.
#[tokio::test]
async fn headers_that_never_end_hold_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let bounds = Bounds { headers: Duration::from_millis(300), ..Bounds::default() };
    let router = Router::new().route("/", axum::routing::get(|| async { "served" }));
    let serving = Server::on(listener, bounds).unwrap().serve_until(router, std::future::pending());
    let serving = tokio::spawn(serving);
    let mut slow = TcpStream::connect(addr).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await.unwrap();
    let mut other = TcpStream::connect(addr).await.unwrap();
    other
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut output = String::new();
    other.read_to_string(&mut output).await.unwrap();
    assert!(output.ends_with("served"), "{output}");
    // It ends without an answer, or with one that says why.
    let mut rest = Vec::new();
    let ended = slow.read_to_end(&mut rest).await;
    assert!(ended.is_err() || !rest.starts_with(b"HTTP/1.1 200"), "{rest:?}");
    serving.abort();
}

/// S3.04: a body that stops in its middle holds no connection either.
#[tokio::test]
async fn a_body_that_stops_in_its_middle_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let bounds = Bounds { body: Duration::from_millis(300), ..Bounds::default() };
    let read = axum::routing::post(|body: String| async move { body });
    let router = Router::new().route("/", read);
    let serving = Server::on(listener, bounds).unwrap().serve_until(router, std::future::pending());
    let serving = tokio::spawn(serving);
    let mut slow = TcpStream::connect(addr).await.unwrap();
    let head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf";
    slow.write_all(head).await.unwrap();
    let mut output = String::new();
    let ended = slow.read_to_string(&mut output).await;
    assert!(ended.is_err() || !output.starts_with("HTTP/1.1 200"), "{output}");
    let mut other = TcpStream::connect(addr).await.unwrap();
    let whole = b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 5\r\n\r\nwhole";
    other.write_all(whole).await.unwrap();
    let mut output = String::new();
    other.read_to_string(&mut output).await.unwrap();
    assert!(output.ends_with("whole"), "{output}");
    serving.abort();
}
