//! Servers that say too much, too often, or what nobody sees: bounded, cut and reported.

use std::time::Duration;

use perihelion::mcp::{
    CallContext, Error, Pool, PoolOptions, ServerInfo, ServersFile, ToolHost, ToolOutcome,
};
use serde_json::{Map, json};

use crate::support::hostile::table;

fn pool(mode: &str, more: &str) -> Pool {
    let env = |name: &str| std::env::var(name).ok();
    let file = ServersFile::parse("f".as_ref(), &table("x", mode, more), &env).unwrap();
    let patience = Duration::from_millis(300);
    Pool::new(file, PoolOptions { patience, ..PoolOptions::default() })
}

async fn scan(pool: &Pool) -> Result<ServerInfo, Error> {
    pool.scan().await.remove(0).outcome
}

async fn call(pool: &Pool, tool: &str) -> Result<ToolOutcome, Error> {
    pool.call("x", tool, Map::new(), CallContext::default()).await
}

/// X6: a check that would take for ever is never begun, of arguments or of results.
#[tokio::test]
async fn schemas_that_take_too_long_to_check_are_refused_and_the_rest_stay() {
    let pool = pool("lists-a-maze", "");
    let info = scan(&pool).await.unwrap();
    let rejected: Vec<_> =
        info.rejected_tools.iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
    let why = "cannot be used: to check it takes more steps than: 10000";
    assert_eq!(
        rejected,
        [format!("maze: its inputSchema {why}"), format!("maze-out: its outputSchema {why}")]
    );
    let deep = info.tools.iter().find(|tool| tool.name == "deep").unwrap();
    let arguments = |levels| {
        let nested = (0..levels).fold(json!({}), |inner, _| json!({"x": inner}));
        deep.input_schema.check(&deep.name, nested.as_object().unwrap())
    };
    arguments(5).unwrap();
    let refused = arguments(60).unwrap_err().to_string();
    assert!(refused.starts_with("invalid arguments for deep: it cannot be checked"), "{refused}");
    assert!(!call(&pool, "echo").await.unwrap().is_error);
    pool.close().await;
}

#[tokio::test]
async fn a_tool_list_over_the_size_limit_is_refused() {
    let pool = pool("lists-too-much", "");
    let error = scan(&pool).await.unwrap_err().to_string();
    assert!(error.ends_with("its tool list is longer than 16777216 bytes"), "{error}");
    pool.close().await;
}

/// What a server says goes into every request of its agent.
#[tokio::test]
async fn instructions_and_descriptions_over_the_limit_are_cut() {
    let pool = pool("says-too-much", "");
    let info = scan(&pool).await.unwrap();
    assert_eq!(info.description.chars().count(), 16_000);
    assert!(info.description.starts_with("Read this. Read this."));
    assert!(info.description.ends_with("[cut: the server says more than is used]"));
    let verbose = info.tools.iter().find(|tool| tool.name == "verbose").unwrap();
    assert_eq!(verbose.description.chars().count(), 8_000);
    assert!(verbose.description.ends_with('…'));
    let rejected: Vec<_> = info.rejected_tools.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(rejected, ["hollow", "(instructions)"], "{:?}", info.rejected_tools);
    pool.close().await;
}

/// X6
#[tokio::test]
async fn instructions_that_hide_something_are_shown_to_no_model_and_reported() {
    let pool = pool("hides", "");
    let info = scan(&pool).await.unwrap();
    assert_eq!(info.description, "");
    let (what, why) = &info.rejected_tools[0];
    assert_eq!(what, "(instructions)");
    assert!(why.ends_with("an invisible character: \\u{e004f}"), "{why}");
    pool.close().await;
}

#[tokio::test]
async fn a_server_that_never_stops_changing_is_not_asked_without_a_pause() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let pool = pool("never-stops-changing", &format!("env = {{ LIST_LOG = {:?} }}", log.path()));
    let listed = || std::fs::read_to_string(log.path()).unwrap().lines().count();
    let started = perihelion::clock::monotonic();
    for _ in 0..300 {
        call(&pool, "echo").await.unwrap();
    }
    // At the start, at the first news, and every three seconds from then on.
    let most = 2 + started.elapsed().as_secs().div_ceil(3) as usize;
    assert!(listed() <= most, "{} lists, {most} expected", listed());
    pool.close().await;
}
