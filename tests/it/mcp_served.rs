//! A bundled server over HTTP: to the one who comes from this machine, under its own name, and to nobody else.

use std::process::Stdio;

use perihelion::mcp::{CallContext, Pool, PoolOptions, ServersFile, ToolHost};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// Starts the notes server and returns its address, such as 127.0.0.1:4711.
async fn notes(home: &tempfile::TempDir) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_perihelion"))
        .args(["mcp", "--http", "127.0.0.1:0", "notes", "--file"])
        .arg(home.path().join("notes.jsonl"))
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = printed.next_line().await.unwrap().unwrap();
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    (child, address)
}

/// Sends a ping with headers of its own and returns the status line.
async fn status(address: &str, headers: &str) -> String {
    let answer = post(address, headers, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    answer.lines().next().unwrap().to_owned()
}

/// Sends a request with headers of its own and returns the whole answer.
async fn post(address: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\n{headers}Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// X6
#[tokio::test]
async fn a_bundled_server_is_reached_over_http_like_any_other() {
    let home = tempfile::tempdir().unwrap();
    let (_child, address) = notes(&home).await;
    let file = format!("[mcp_servers.notes]\nurl = \"http://{address}/mcp\"\n");
    let file = ServersFile::parse("mcp-servers.toml".as_ref(), &file, &|_| None).unwrap();
    let pool = Pool::new(file, PoolOptions::default());
    assert_eq!(pool.scan().await.remove(0).outcome.unwrap().protocol_version, "2026-07-28");
    let arguments = json!({ "text": "remember" }).as_object().cloned().unwrap();
    let noted = pool.call("notes", "append_note", arguments, CallContext::default()).await.unwrap();
    assert_eq!(noted.text, "Noted as line 1.");
    pool.close().await;
}

#[tokio::test]
async fn other_names_and_pages_of_other_origins_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let (_child, address) = notes(&home).await;
    let refused = status(&address, "Host: evil.example\r\n").await;
    assert!(refused.contains("403"), "{refused}");
    let refused =
        status(&address, &format!("Host: {address}\r\nOrigin: https://evil.example\r\n")).await;
    assert!(refused.contains("403"), "{refused}");
    let port = address.rsplit(':').next().unwrap();
    let own = format!("Host: {address}\r\nOrigin: http://localhost:{port}\r\n");
    let taken = status(&address, &own).await;
    assert!(!taken.contains("403"), "{taken}");
}

#[tokio::test]
async fn an_address_reachable_from_outside_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_perihelion"))
        .args(["mcp", "--http", "0.0.0.0:0", "notes", "--file", "notes.jsonl"])
        .current_dir(home.path())
        .output()
        .await
        .unwrap();
    let printed = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success() && printed.contains("on loopback only"), "{printed}");
}

/// X6
#[tokio::test]
async fn an_unsupported_method_of_a_bundled_server_is_unknown_instead_of_empty() {
    let home = tempfile::tempdir().unwrap();
    let (_child, address) = notes(&home).await;
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        let headers = format!(
            "Host: {address}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n"
        );
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        } } });
        let answer = post(&address, &headers, &body.to_string()).await;
        assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("-32601"), "{answer}");
    }
}
