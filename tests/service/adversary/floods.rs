//! Floods: idle streams by the thousand, more connections than there may be, and a tenant that takes all it can.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::people::{ask, id, key};
use crate::saying;
use crate::served::Served;

/// Streams of the suite; `make test-flood` opens 10,000.
const STREAMS: usize = 1_000;

/// Streams of one thread.
const TOGETHER: usize = 50;

/// KB that an idle stream may take of the server; a build with optimisations takes less than half of it.
const MOST_KB: u64 = 90;

/// Opens a connection and sends a request without a body.
async fn begin(served: &Served, path: &str, key: Option<&str>) -> TcpStream {
    let addr = served.url.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(addr).await.unwrap();
    let key = key.map_or_else(String::new, |key| format!("x-api-key: {key}\r\n"));
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{key}\r\n");
    connection.write_all(head.as_bytes()).await.unwrap();
    connection
}

/// Reads until a text has come.
async fn until(connection: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    let mut piece = [0_u8; 4096];
    loop {
        let count = connection.read(&mut piece).await.unwrap();
        assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&piece[..count]);
        let so_far = String::from_utf8_lossy(&read);
        if so_far.contains(text) {
            return so_far.into_owned();
        }
    }
}

/// Opens a stream, of which the head of the answer has come.
async fn stream(served: &Served, path: &str, key: Option<&str>) -> TcpStream {
    let mut connection = begin(served, path, key).await;
    let head = until(&mut connection, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    connection
}

/// Returns how many streams this machine lets a process hold, of so many that are wanted.
#[expect(clippy::print_stderr, reason = "a test that measures less than it is asked to says so")]
fn permitted(wanted: usize) -> usize {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let room = usize::try_from(hard).unwrap_or(usize::MAX).saturating_sub(500);
    if room < wanted {
        eprintln!(
            "this machine permits {hard} descriptors: {room} streams in the place of {wanted}"
        );
    }
    room.min(wanted)
}

/// S3.04, X6: idle streams cost a bounded amount each, what they wait for reaches them, and others are served meanwhile.
#[tokio::test]
async fn thousands_of_idle_streams_cost_little_and_delay_no_request() {
    let wanted = std::env::var("PERIHELION_TEST_STREAMS").ok().and_then(|text| text.parse().ok());
    let count = permitted(wanted.unwrap_or(STREAMS));
    let served = Served::sqlite().await;
    let mut threads = Vec::new();
    for _ in 0..count.div_ceil(TOGETHER) {
        threads.push(served.thread().await);
    }
    // Warm: statements, caches and the run's own parts.
    let wait = format!("/threads/{}/runs/wait", threads[0]);
    served.post(&wait, &saying("hello")).await;
    let before = served.memory_kb("VmRSS");
    let mut connections = Vec::with_capacity(count);
    for number in 0..count {
        let path = format!("/threads/{}/stream", threads[number / TOGETHER]);
        connections.push(stream(&served, &path, None).await);
    }
    let each = served.memory_kb("VmRSS").saturating_sub(before) / count as u64;
    println!("{count} idle streams take {each} KB each");
    assert!(each <= MOST_KB, "{each} KB each, at most: {MOST_KB}");
    let (code, done) = served.post(&wait, &saying("hello")).await;
    assert_eq!((code, &done["answer"]), (200, &json!("Hello from the star.")), "{done}");
    for connection in &mut connections[..TOGETHER] {
        until(connection, "run_done").await;
    }
}

/// Opens a WebSocket.
async fn socket(served: &Served, path: &str) -> TcpStream {
    let addr = served.url.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(addr).await.unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    let head = until(&mut connection, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    connection
}

/// S3.04: beyond the cap connections wait, sockets counted, those that are open are answered, and who waits is next.
#[tokio::test]
async fn connections_beyond_the_cap_wait_until_one_closes() {
    let served = Served::sqlite().await;
    let served = served.again_with(&[("PERIHELION_SERVE_MAX_CONNECTIONS", "4")]).await;
    let thread = served.thread().await;
    // The client's own connection is one of the four.
    let path = format!("/threads/{thread}/stream");
    let mut connections = Vec::new();
    for _ in 0..2 {
        connections.push(stream(&served, &path, None).await);
    }
    connections.push(socket(&served, &format!("{path}/events")).await);
    let mut waits = begin(&served, "/info", None).await;
    for _ in 0..50 {
        assert_eq!(served.get("/info").await.0, 200);
    }
    let mut piece = [0_u8; 1];
    let early = waits.try_read(&mut piece).unwrap_err();
    assert_eq!(early.kind(), std::io::ErrorKind::WouldBlock);
    connections.pop();
    let head = until(&mut waits, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
}

/// S3.04: a tenant that keeps streams open is refused more of anything, and others are not.
#[tokio::test]
async fn a_tenant_with_too_many_open_streams_is_refused_while_other_tenants_are_served() {
    let served = Served::sqlite().await;
    let ours = key(&served, &["ours"]).await;
    let theirs = key(&served, &["theirs", "--tenant", "acme"]).await;
    let served = served.again_with(&[("PERIHELION_SERVE_MAX_OPEN_REQUESTS", "8")]).await;
    let who = [("x-api-key", ours.as_str())];
    let thread = id(&ask(&served, "POST", "/threads", &who, Some(json!({}))).await);
    let path = format!("/threads/{thread}/stream");
    let mut connections = Vec::new();
    for _ in 0..8 {
        connections.push(stream(&served, &path, Some(&ours)).await);
    }
    for path in [path.as_str(), "/info", "/v1/approvals"] {
        let mut refused = begin(&served, path, Some(&ours)).await;
        let head = until(&mut refused, "\r\n\r\n").await.to_lowercase();
        assert!(head.starts_with("http/1.1 429") && head.contains("retry-after: "), "{head}");
    }
    let other = [("x-api-key", theirs.as_str())];
    assert_eq!(ask(&served, "GET", "/info", &other, None).await.0, 200);
    connections.pop();
    // The server hears of it a moment later.
    while ask(&served, "GET", "/info", &who, None).await.0 != 200 {
        tokio::task::yield_now().await;
    }
}
