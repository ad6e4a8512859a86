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

/// S3.04: a peer that does not read its answer takes no place from others.
#[tokio::test]
async fn an_answer_that_nobody_reads_holds_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let write = Duration::from_millis(300);
    let bounds = Bounds { write, connections: 1, ..Bounds::default() };
    // More than the buffers of both systems take.
    let long = || async { vec![b'x'; 64 << 20] };
    let router = Router::new()
        .route("/long", axum::routing::get(long))
        .route("/", axum::routing::get(|| async { "served" }));
    let serving = Server::on(listener, bounds).unwrap().serve_until(router, std::future::pending());
    let serving = tokio::spawn(serving);
    let mut deaf = TcpStream::connect(addr).await.unwrap();
    deaf.write_all(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    deaf.readable().await.unwrap();
    let mut other = TcpStream::connect(addr).await.unwrap();
    other
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut output = String::new();
    let read = other.read_to_string(&mut output);
    tokio::time::timeout(Duration::from_secs(60), read).await.unwrap().unwrap();
    assert!(output.ends_with("served"), "{output}");
    serving.abort();
}

/// A peer that reads slowly, and reads on, gets all of a long answer.
#[tokio::test]
async fn an_answer_that_is_read_slowly_arrives_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let bounds = Bounds { write: Duration::from_millis(500), ..Bounds::default() };
    let long = || async { vec![b'x'; 24 << 20] };
    let router = Router::new().route("/", axum::routing::get(long));
    let serving = Server::on(listener, bounds).unwrap().serve_until(router, std::future::pending());
    let serving = tokio::spawn(serving);
    let mut slow = TcpStream::connect(addr).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut piece = vec![0; 2 << 20];
    let mut count = 0;
    loop {
        let read = slow.read(&mut piece).await.unwrap();
        if read == 0 {
            break;
        }
        count += read;
        perihelion_clock::sleep(Duration::from_millis(20)).await;
    }
    assert!(count > 24 << 20, "{count}");
    serving.abort();
}
