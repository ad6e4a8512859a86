//! Servers over stdio that write the protocol in their own way, played by the hostile fixture.

use std::time::Duration;

use perihelion::mcp::{
    CallContext, Error, Pool, PoolOptions, ServerInfo, ServersFile, ToolHost, ToolOutcome,
};
use serde_json::{Map, Value, json};

use crate::support::hostile::table;

fn pool(mode: &str, more: &str) -> Pool {
    let file = table("x", mode, more);
    let file = ServersFile::parse("mcp-servers.toml".as_ref(), &file, &|_| None).unwrap();
    let patience = Duration::from_millis(300);
    Pool::new(file, PoolOptions { patience, ..PoolOptions::default() })
}

async fn scan(pool: &Pool) -> Result<ServerInfo, Error> {
    pool.scan().await.remove(0).outcome
}

async fn call(pool: &Pool, tool: &str) -> Result<ToolOutcome, Error> {
    pool.call("x", tool, Map::new(), CallContext::default()).await
}

/// An answer that was heard ends its call, with its words, long before the timeout.
#[tokio::test]
async fn an_answer_that_is_written_almost_right_ends_its_call_at_once() {
    let pool = pool("plain", "tool_timeout_sec = 600");
    let content = r#"{"content":[{"type":"text","text":"words"}]}"#;
    for (raw, is_error) in [
        (
            r#"{"jsonrpc":"2.0","id":"ID","result":{"content":[{"type":"text","text":"words"}],"structuredContent":{"x":NaN}}}"#.to_owned(),
            false,
        ),
        (format!(r#"{{"jsonrpc":"2.0","id":"ID","error":null,"result":{content}}}"#), false),
        (format!(r#"{{"id":"ID","result":{content}}}"#), false),
        (format!(r#"[{{"jsonrpc":"2.0","id":"ID","result":{content}}}]"#), false),
        (
            format!("{{\n  \"jsonrpc\": \"2.0\",\n  \"id\": \"ID\",\n  \"result\": {content}\n}}"),
            false,
        ),
        (format!("\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":\"ID\",\"result\":{content}}}"), false),
        (
            r#"{"jsonrpc":"2.0","id":"ID","error":{"code":"ENOENT","message":"words"}}"#.to_owned(),
            true,
        ),
        (r#"{"jsonrpc":"2.0","id":"ID","error":"words"}"#.to_owned(), true),
        (r#"{"jsonrpc":"2.0","id":"ID","error":{"message":"words"}}"#.to_owned(), true),
        (r#"{"jsonrpc":"2.0","id":"ID","error":null,"said":"words"}"#.to_owned(), true),
        (
            r#"{"jsonrpc":"2.0","id":"ID","result":{"content":undefined,"said":"words"}}"#
                .to_owned(),
            true,
        ),
    ] {
        let arguments = json!({ "raw": raw }).as_object().cloned().unwrap();
        let outcome = pool.call("x", "say-raw", arguments, CallContext::default()).await;
        let outcome = outcome.unwrap_or_else(|error| panic!("{raw}: {error}"));
        assert!(outcome.text.contains("words"), "{raw}: {}", outcome.text);
        assert_eq!(outcome.is_error, is_error, "{raw}");
    }
    let raw = r#"{"jsonrpc":"2.0","id":"ID","error":{"code":"-32602","message":"words"}}"#;
    let arguments = json!({ "raw": raw }).as_object().cloned().unwrap();
    let error = pool.call("x", "say-raw", arguments, CallContext::default()).await.unwrap_err();
    assert!(matches!(&error, Error::Refused { reason, .. } if reason.contains("words")), "{error}");
    assert!(!call(&pool, "echo").await.unwrap().is_error);
    pool.close().await;
}

#[tokio::test]
async fn an_invalid_initialize_result_is_reported_with_its_field() {
    let whole = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "serverInfo": { "name": "odd", "version": "1" },
    });
    for (field, value) in [
        ("protocolVersion", Value::Null),
        ("capabilities", json!([])),
        ("serverInfo", json!("odd")),
        ("serverInfo.version", json!(1.5)),
        ("serverInfo.name", Value::Null),
    ] {
        let mut greeting = whole.clone();
        let place = format!("/{}", field.replace('.', "/"));
        *greeting.pointer_mut(&place).unwrap() = value;
        let greeting = greeting.to_string();
        let pool = pool("plain", &format!("env = {{ GREETING = {greeting:?} }}"));
        let error = scan(&pool).await.unwrap_err().to_string();
        assert!(error.contains(&format!("`{field}`")), "{field}: {error}");
        pool.close().await;
    }
}

#[tokio::test]
async fn schemas_of_other_drafts_and_careless_generators_are_repaired() {
    let pool = pool("lists-oddly", "");
    let info = scan(&pool).await.unwrap();
    assert_eq!(info.rejected_tools, []);
    assert_eq!(info.tools.len(), 6);
    assert!(info.tools.iter().take(5).all(|tool| tool.annotations.read_only == Some(true)));
    for (tool, arguments) in [
        ("flag-bound", json!({ "n": 1 })),
        ("tuple", json!({ "n": ["x"] })),
        ("python", json!({ "n": "A1" })),
    ] {
        let arguments = arguments.as_object().cloned().unwrap();
        let tool = info.tools.iter().find(|one| one.name == tool).unwrap();
        let refused = tool.input_schema.check(&tool.name, &arguments);
        assert!(refused.is_err(), "{}: {arguments:?}", tool.name);
    }
    pool.close().await;
}

/// X2: a call that was not handed to a server that ended is handed to the next one.
#[tokio::test]
async fn a_server_that_ends_between_two_calls_leaves_no_call_unsent() {
    let pool = pool("plain", "breaker_failures = 1000");
    for _ in 0..10 {
        assert_eq!(call(&pool, "leave").await.unwrap().text, "bye");
        match call(&pool, "echo").await {
            Ok(outcome) => assert!(!outcome.is_error),
            // It had the call in its pipe when it ended, and may have read it.
            Err(error) => assert!(matches!(error, Error::Unknown { .. }), "{error}"),
        }
    }
    pool.close().await;
}
