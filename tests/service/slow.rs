//! Clients that do not read, and streams on which nothing happens (X5, X8).

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use super::served::Served;
use super::streams::{Event, events, read};
use super::{on_both, saying};

on_both!(
    a_client_that_does_not_read_costs_its_buffer_and_loses_no_event,
    a_client_that_leaves_at_once_leaves_no_thread_without_a_run,
);

/// Clients that open a stream and leave it.
const CLIENTS: usize = 24;

/// X5
async fn a_client_that_does_not_read_costs_its_buffer_and_loses_no_event(served: Served) {
    let thread = served.thread().await;
    // A long message, which each state repeats.
    let message = json!({ "role": "user", "content": "word ".repeat(160_000) });
    let update = json!({ "values": { "messages": [message] }, "as_node": "qa" });
    let (code, reply) = served.post(&format!("/threads/{thread}/state"), &update).await;
    assert_eq!(code, 200, "{reply}");
    let mut body = saying("hello");
    body["stream_mode"] = json!(["values", "debug", "tasks", "checkpoints"]);
    let runs = format!("/threads/{thread}/runs");
    let whole = events(&served, &format!("{runs}/stream"), &body).await;
    let size: usize = whole.iter().map(|event| event.data.to_string().len()).sum();
    assert!(size > 8 << 20, "a stream too short to show anything: {size}");
    let path = format!("{runs}/{}/stream", whole[0].data["run_id"].as_str().unwrap());

    // Warm: the log was read and shown once.
    let join = async |last: &str| {
        let asked = served.http.get(format!("{}{path}", served.url)).header("last-event-id", last);
        read(asked.send().await.unwrap(), usize::MAX).await
    };
    assert_eq!(join("-1").await, whole);
    let before = served.memory_kb("VmRSS");
    let mut left = Vec::new();
    for _ in 0..CLIENTS {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 * 1024).unwrap();
        let addr = served.url.strip_prefix("http://").unwrap().parse().unwrap();
        let mut connection = socket.connect(addr).await.unwrap();
        let head = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\nlast-event-id: -1\r\n\r\n");
        connection.write_all(head.as_bytes()).await.unwrap();
        // The head and the beginning have come, and what follows is not read.
        connection.readable().await.unwrap();
        left.push(connection);
    }
    // Others are served meanwhile, so that what the server would collect for the idle ones is there by now.
    for _ in 0..3 {
        assert_eq!(join("-1").await, whole);
    }
    let taken = served.memory_kb("VmRSS").saturating_sub(before);
    // Each holds what one step makes of events, and nothing of those that follow.
    let all = (CLIENTS * size / 1024) as u64;
    assert!(taken < all / 2, "{CLIENTS} clients that do not read take {taken} KB of {all}");

    // One reads again, and one comes back with the last that it had heard.
    let mut again = left.pop().unwrap();
    let mut text = String::new();
    again.read_to_string(&mut text).await.unwrap();
    let heard = parsed(text.split_once("\r\n\r\n").unwrap().1);
    assert_eq!(heard, whole);
    drop(left);
    let middle = whole.len() / 2;
    assert_eq!(join(&whole[middle].id).await, whole[middle + 1..]);
}

/// Reads the events of a stream.
fn parsed(text: &str) -> Vec<Event> {
    let event = |one: &str| {
        let field = |name: &str| one.lines().find_map(|line| line.strip_prefix(name));
        let data = field("data: ").map_or(Value::Null, |data| serde_json::from_str(data).unwrap());
        let name = field("event: ")?.to_owned();
        Some(Event { name, data, id: field("id: ").unwrap_or_default().to_owned() })
    };
    text.split("\n\n").filter_map(event).collect()
}

/// X8
#[tokio::test]
async fn an_idle_stream_sends_a_heartbeat() {
    let served = Served::sqlite().await;
    let thread = served.thread().await;
    let before = served.model.requests().len();
    let (_, run) = served.post(&format!("/threads/{thread}/runs"), &saying("hang")).await;
    served.model.wait_for_requests(before + 1).await;
    let run = run["run_id"].as_str().unwrap();
    for path in
        [format!("/threads/{thread}/stream"), format!("/threads/{thread}/runs/{run}/stream")]
    {
        let asked = served.http.get(format!("{}{path}", served.url)).header("last-event-id", "-1");
        let mut stream = asked.send().await.unwrap();
        let mut heard = String::new();
        while heard.matches("\n: heartbeat").count() < 2 {
            let piece = stream.chunk().await.unwrap();
            heard.push_str(&String::from_utf8_lossy(&piece.unwrap_or_else(|| panic!("{heard}"))));
        }
    }
}

/// Requests of clients that leave before they are answered.
const LEFT: usize = 200;

/// X5
async fn a_client_that_leaves_at_once_leaves_no_thread_without_a_run(served: Served) {
    let mut body = saying("hello");
    // It waits for its time, and its thread stays.
    body["after_seconds"] = json!(3_600);
    body["on_completion"] = json!("keep");
    let body = body.to_string();
    let addr = served.url.strip_prefix("http://").unwrap();
    for number in 0..LEFT {
        let mut connection = tokio::net::TcpStream::connect(addr).await.unwrap();
        let head = "POST /runs/wait HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
        let length = body.len();
        let request = format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}");
        connection.write_all(request.as_bytes()).await.unwrap();
        // Some leave at once, and some a little later.
        perihelion::clock::sleep(std::time::Duration::from_micros(number as u64 * 50)).await;
        drop(connection);
    }
    let limit = json!({ "limit": 1_000 });
    let is_busy = |thread: &Value| thread["status"] == "busy";
    // Of some clients, the connection was gone before the request was read.
    let have_runs = |found: &Value| {
        found.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_busy))
    };
    served.until("/threads/search", &limit, have_runs).await;
}
