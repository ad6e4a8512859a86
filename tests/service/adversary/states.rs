//! States of a hundred megabytes: at once by every route that takes one, and by steps.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::NOBODY;
use crate::served::Served;
use crate::{on_both, saying};

on_both!(a_state_that_grows_by_steps_is_refused_when_it_is_too_large);

/// Bytes of a body at most, as it is set without a setting.
const BODY: usize = 16 << 20;

/// MB that the server may have had resident beside what it had before; debug builds and both databases considered.
const MOST_MB: u64 = 400;

/// Sends a body of a hundred megabytes as far as it is taken, in chunks or with its length, and returns the answer.
async fn pour(served: &Served, method: &str, path: &str, is_chunked: bool, most: usize) -> String {
    const WHOLE: usize = 100_000_000;
    let addr = served.url.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(addr).await.unwrap();
    let length = if is_chunked {
        "transfer-encoding: chunked".to_owned()
    } else {
        format!("content-length: {WHOLE}")
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\na2a-version: 1.0\r\n{length}\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    let piece = vec![b'x'; 1 << 20];
    let (mut reader, mut writer) = connection.split();
    let sending = async {
        let mut sent = 0;
        let first = b"{\"input\":{\"messages\":[{\"role\":\"user\",\"content\":\"";
        // Beyond the bound nothing more is sent, so that nothing that was sent stands between us and the answer.
        while sent <= most {
            let piece = if sent == 0 { &first[..] } else { &piece[..] };
            let piece = &piece[..piece.len().min(most + 1 - sent)];
            if is_chunked {
                writer.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
            }
            writer.write_all(piece).await?;
            if is_chunked {
                writer.write_all(b"\r\n").await?;
            }
            sent += piece.len();
        }
        writer.flush().await
    };
    let reading = async {
        let mut read = Vec::new();
        let mut piece = [0_u8; 4096];
        while !read.windows(4).any(|end| end == b"\r\n\r\n") {
            match reader.read(&mut piece).await {
                Ok(count) if count > 0 => read.extend_from_slice(&piece[..count]),
                ended => panic!("{method} {path}: {ended:?}"),
            }
        }
        String::from_utf8_lossy(&read).into_owned()
    };
    // Who is answered early is not listened to any more.
    let (_, answer) = futures::join!(sending, reading);
    answer
}

/// S3.04: refused before the whole of it was read, with what is needed of memory for one that is permitted.
#[tokio::test]
async fn every_route_that_accepts_a_state_refuses_a_body_of_a_hundred_megabytes() {
    let served = Served::sqlite().await;
    let thread = served.thread().await;
    let before = served.memory_kb("VmHWM");
    let of_thread = |path: &str| format!("/threads/{thread}{path}");
    for (method, path) in [
        ("POST", "/threads".to_owned()),
        ("PATCH", of_thread("")),
        ("POST", of_thread("/state")),
        ("POST", of_thread("/state/checkpoint")),
        ("POST", of_thread("/runs")),
        ("POST", of_thread("/runs/wait")),
        ("POST", of_thread("/runs/stream")),
        ("POST", of_thread("/runs/crons")),
        ("POST", of_thread("/commands")),
        ("POST", of_thread("/stream/events")),
        ("POST", "/runs".to_owned()),
        ("POST", "/runs/wait".to_owned()),
        ("POST", "/runs/stream".to_owned()),
        ("POST", "/runs/batch".to_owned()),
        ("POST", "/runs/crons".to_owned()),
        ("POST", "/v1/responses".to_owned()),
        ("POST", "/v1/chat/completions".to_owned()),
        ("POST", "/v1/threads/import".to_owned()),
        ("POST", format!("/v1/approvals/{NOBODY}")),
        ("POST", "/a2a".to_owned()),
        ("POST", "/a2a/message:send".to_owned()),
        ("POST", "/a2a/message:stream".to_owned()),
        ("POST", "/mcp".to_owned()),
        ("PUT", "/store/items".to_owned()),
        ("POST", "/assistants".to_owned()),
        ("POST", "/v1/auth/login".to_owned()),
    ] {
        for is_chunked in [true, false] {
            let most = if path == "/mcp" { 4 << 20 } else { BODY };
            let answer = pour(&served, method, &path, is_chunked, most).await;
            assert!(answer.starts_with("HTTP/1.1 413"), "{method} {path} {is_chunked}: {answer}");
        }
    }
    let grown = (served.memory_kb("VmHWM") - before) / 1024;
    println!("bodies of a hundred megabytes took {grown} MB");
    assert!(grown < MOST_MB, "{grown} MB, at most: {MOST_MB}");
    let (code, done) = served.post("/runs/wait", &saying("hello")).await;
    assert_eq!((code, &done["answer"]), (200, &json!("Hello from the star.")), "the server lives");
}

/// S3.04
async fn a_state_that_grows_by_steps_is_refused_when_it_is_too_large(served: Served) {
    const MOST: usize = 3_000_000;
    let most = MOST.to_string();
    let served = served.again_with(&[("PERIHELION_LIMITS_MAX_STATE_BYTES", &most)]).await;
    let thread = served.thread().await;
    let state = format!("/threads/{thread}/state");
    let message = json!({ "type": "human", "content": "x".repeat(500_000) });
    let update = json!({ "values": { "messages": [message] }, "as_node": "qa" });
    let mut taken = 0;
    let refused = loop {
        let (code, reply) = served.post(&state, &update).await;
        match code {
            200 => taken += 1,
            _ => break (code, reply),
        }
        assert!(taken * 500_000 <= MOST, "it was taken without an end");
    };
    assert!(taken >= 4, "what fits is taken: {taken}");
    assert_eq!(refused.0, 413, "{refused:?}");
    let why = refused.1["detail"].as_str().unwrap();
    assert!(why.contains("limits.max_state_bytes") && why.contains(&thread), "{why}");
    // Nothing of what was refused is there, by a fork and by a run neither.
    let kept = |values: &Value| values["messages"].as_array().map_or(0, Vec::len);
    assert_eq!(kept(&served.get(&state).await.1["values"]), taken);
    let (_, copy) = served.post(&format!("/threads/{thread}/copy"), &json!({})).await;
    let copied = format!("/threads/{}/state", copy["thread_id"].as_str().unwrap());
    assert_eq!(served.post(&copied, &update).await.0, 413);
    let mut resumed = json!({ "assistant_id": "swarm", "command": { "update": update["values"] } });
    resumed["command"]["goto"] = json!("__end__");
    let (_, reply) = served.post(&format!("/threads/{thread}/runs/wait"), &resumed).await;
    assert!(reply["__error__"].to_string().contains("max_state_bytes"), "{}", reply["__error__"]);
    // What makes it smaller is taken, and a new thread has all the room.
    let fresh = served.thread().await;
    assert_eq!(served.post(&format!("/threads/{fresh}/state"), &update).await.0, 200);
}
