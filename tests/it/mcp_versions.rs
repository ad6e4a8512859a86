//! Servers of every version of the protocol, and what each is told.

use perihelion::mcp::{CallContext, Pool, PoolOptions, ServersFile, ToolHost};
use serde_json::json;

fn pool(protocol: &str, log: &str) -> Pool {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/asking_mcp_server");
    assert!(program.exists(), "build it with `cargo build --examples`: {}", program.display());
    let file = format!(
        "[mcp_servers.x]\ncommand = {program:?}\nenv = {{ PROTOCOL = {protocol:?}, LOG = {log:?} }}\n"
    );
    let file = ServersFile::parse("mcp-servers.toml".as_ref(), &file, &|_| None).unwrap();
    Pool::new(file, PoolOptions::default())
}

#[tokio::test]
async fn every_version_from_2024_to_2026_is_agreed_on_and_its_tools_are_called() {
    for protocol in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let pool = pool(protocol, "");
        let info = pool.scan().await.remove(0).outcome.unwrap();
        assert_eq!(info.protocol_version, protocol);
        let arguments = json!({ "item": "it" }).as_object().cloned().unwrap();
        let outcome = pool.call("x", "echo", arguments, CallContext::default()).await.unwrap();
        assert_eq!(outcome.text, "echo it");
        assert_eq!(outcome.via.unwrap().protocol_version, protocol);
        pool.close().await;
    }
}
