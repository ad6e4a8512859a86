//! The life of a server: started when it is needed, stopped when it is not, left alone when it fails.

use std::time::Duration;

use perihelion::mcp::{
    CallContext, Error, Phase, Pool, PoolOptions, ServerState, ServersFile, ToolHost, ToolOutcome,
};
use serde_json::{Map, json};
use tempfile::TempDir;

use crate::support::hostile::{assert_marked, assert_none_left, marked, new_mark, table};

fn pool_with(file: &str, cache: Option<&TempDir>) -> Pool {
    let file = ServersFile::parse("f".as_ref(), file, &|name| std::env::var(name).ok()).unwrap();
    let options = PoolOptions {
        patience: Duration::from_millis(300),
        cache: cache.map(|directory| directory.path().join("definitions")),
        ..PoolOptions::default()
    };
    Pool::new(file, options)
}

fn pool(mode: &str, more: &str) -> Pool {
    pool_with(&table("x", mode, more), None)
}

async fn call(pool: &Pool, tool: &str) -> Result<ToolOutcome, Error> {
    pool.call("x", tool, Map::new(), CallContext::default()).await
}

fn state(pool: &Pool) -> ServerState {
    pool.states().into_iter().find(|state| state.server == "x").unwrap()
}

/// Waits until the pool has changed so that something holds.
async fn until(pool: &Pool, condition: impl Fn(&Pool) -> bool) {
    let mut changes = pool.changes();
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        while !condition(pool) {
            changes.changed().await.unwrap();
        }
    });
    assert!(waited.await.is_ok(), "{:?}", pool.states());
}

fn has_tool(pool: &Pool, name: &str) -> bool {
    pool.known().iter().any(|server| server.tools.iter().any(|tool| tool.name == name))
}

/// S1.09, X6: the menu of a hundred servers is there before any of them is.
#[tokio::test]
async fn known_servers_are_not_started_before_their_first_call() {
    let (mark, line) = new_mark();
    let cache = tempfile::tempdir().unwrap();
    let file: String =
        (0..100).map(|number| table(&format!("s{number}"), "plain", &line)).collect();
    // All of them reach the same server, so one start teaches them all.
    let first = pool_with(&table("s0", "plain", &line), Some(&cache));
    assert!(first.scan().await[0].outcome.is_ok());
    first.close().await;
    assert_none_left(&mark).await;

    let pool = pool_with(&file, Some(&cache));
    let statuses = pool.scan().await;
    assert_eq!(statuses.iter().filter(|status| status.outcome.is_ok()).count(), 100);
    assert!(marked(&mark).is_empty(), "nothing was started");
    assert!(pool.states().iter().all(|state| state.phase == Phase::Cached && state.tools > 10));
    let outcome = pool.call("s42", "echo", Map::new(), CallContext::default()).await.unwrap();
    assert!(!outcome.is_error);
    assert_marked(&mark, 1).await;
    assert_eq!(pool.states()[42].phase, Phase::Running);
    pool.close().await;
    assert_none_left(&mark).await;
}

#[tokio::test]
async fn stale_damaged_and_foreign_cache_entries_are_fetched_again() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let starts = || std::fs::read_to_string(log.path()).unwrap().lines().count();
    let cache = tempfile::tempdir().unwrap();
    let environment = |ttl: &str| format!("env = {{ START_LOG = {:?}{ttl} }}", log.path());
    let scan = async |more: &str| {
        let pool = pool_with(&table("x", "plain", more), Some(&cache));
        let outcome = pool.scan().await.remove(0).outcome;
        pool.close().await;
        outcome.unwrap();
        starts()
    };
    let lasting = environment("");
    assert_eq!((scan(&lasting).await, scan(&lasting).await), (1, 1));
    // The server says that its list is stale at once.
    let fleeting = environment(", TTL_MS = \"0\"");
    assert_eq!((scan(&fleeting).await, scan(&fleeting).await), (2, 3));
    // The operator's word goes before the server's.
    let overruled = format!("{fleeting}\ndefinitions_ttl_sec = 3600");
    assert_eq!(scan(&overruled).await, 3);
    // A required server is started: whether it starts is the point.
    assert_eq!(scan(&format!("{lasting}\nrequired = true")).await, 4);
    for entry in std::fs::read_dir(cache.path().join("definitions")).unwrap() {
        std::fs::write(entry.unwrap().path(), "{").unwrap();
    }
    assert_eq!((scan(&lasting).await, scan(&lasting).await), (5, 5));
}

#[tokio::test]
async fn the_cache_of_a_server_contains_no_secret() {
    let cache = tempfile::tempdir().unwrap();
    let text = table("x", "plain", "env = { API_TOKEN = \"${SERVER_TOKEN}\" }");
    let env = |name: &str| (name == "SERVER_TOKEN").then(|| "token-of-the-server".to_owned());
    let file = ServersFile::parse("f".as_ref(), &text, &env).unwrap();
    let directory = Some(cache.path().to_owned());
    let pool = Pool::new(file, PoolOptions { cache: directory, ..PoolOptions::default() });
    assert!(pool.scan().await.remove(0).outcome.is_ok());
    pool.close().await;
    let kept = std::fs::read_dir(cache.path()).unwrap().next().unwrap().unwrap();
    let kept = std::fs::read_to_string(kept.path()).unwrap();
    assert!(kept.contains("Promises a number. [redacted]"), "{kept}");
    assert!(!kept.contains("token-of-the-server"), "{kept}");
}

/// A server that ignores discovery is greeted again in the same process, and at once the next time.
#[tokio::test]
async fn the_protocol_version_of_a_server_is_remembered_across_processes() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let line = format!(
        "startup_timeout_sec = 3\ndefinitions_ttl_sec = 0.001\nenv = {{ START_LOG = {:?} }}",
        log.path()
    );
    let cache = tempfile::tempdir().unwrap();
    for starts in [1, 2] {
        let pool = pool_with(&table("x", "ignores-discover", &line), Some(&cache));
        assert!(pool.scan().await.remove(0).outcome.is_ok());
        pool.close().await;
        assert_eq!(std::fs::read_to_string(log.path()).unwrap().lines().count(), starts);
    }
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_started_again_by_the_next_call() {
    let (mark, line) = new_mark();
    let pool = pool("plain", &format!("{line}\nidle_timeout_sec = 0.2"));
    let first = call(&pool, "pid").await.unwrap().text;
    until(&pool, |pool| state(pool).phase == Phase::Stopped).await;
    assert_none_left(&mark).await;
    assert!(state(&pool).tools > 10, "its tools are still offered");
    assert_ne!(call(&pool, "pid").await.unwrap().text, first);
    pool.close().await;
}

#[tokio::test]
async fn a_long_call_prevents_an_idle_stop_of_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("there");
    let idle = "idle_timeout_sec = 0.05";
    let pool = pool_with(&(table("x", "plain", idle) + &table("y", "plain", idle)), None);
    let arguments = json!({ "until": file }).as_object().cloned().unwrap();
    let lingering = pool.call("x", "linger", arguments, CallContext::default());
    let make = async {
        until(&pool, |pool| state(pool).phase == Phase::Running).await;
        // Another one that was called later, for a moment, is stopped: so would this one be, were calls not counted.
        pool.call("y", "echo", Map::new(), CallContext::default()).await.unwrap();
        until(&pool, |pool| {
            let other = pool.states().into_iter().find(|state| state.server == "y").unwrap();
            other.phase == Phase::Stopped
        })
        .await;
        assert_eq!(state(&pool).phase, Phase::Running);
        std::fs::write(&file, "").unwrap();
    };
    let (outcome, ()) = tokio::join!(lingering, make);
    assert_eq!(outcome.unwrap().text, "lingered");
    pool.close().await;
}

/// A server that does one thing after the other lists its tools only after the call.
#[tokio::test]
async fn a_list_that_is_late_during_a_call_does_not_end_the_call() {
    let directory = tempfile::tempdir().unwrap();
    let begun = directory.path().join("begun");
    let until = directory.path().join("there");
    let pool = pool("plain", "startup_timeout_sec = 2");
    let arguments = json!({ "begun": begun, "until": until }).as_object().cloned().unwrap();
    let lingering = pool.call("x", "linger", arguments, CallContext::default());
    let rescan = async {
        while !begun.exists() {
            tokio::task::yield_now().await;
        }
        let error = pool.rescan().await.remove(0).outcome.unwrap_err().to_string();
        assert!(error.contains("the tool list did not arrive within"), "{error}");
        assert_eq!(state(&pool).phase, Phase::Running);
        std::fs::write(&until, "").unwrap();
    };
    let (outcome, ()) = tokio::join!(lingering, rescan);
    assert_eq!(outcome.unwrap().text, "lingered");
    assert!(pool.rescan().await.remove(0).outcome.is_ok());
    pool.close().await;
}

#[tokio::test]
async fn a_server_that_died_without_a_call_is_cleaned_up() {
    let (mark, line) = new_mark();
    let pool = pool("plain", &line);
    call(&pool, "leave-a-child").await.unwrap();
    let pid: i32 = call(&pool, "pid").await.unwrap().text.parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)
        .unwrap();
    until(&pool, |pool| state(pool).phase == Phase::Stopped).await;
    assert_none_left(&mark).await;
    assert!(!call(&pool, "echo").await.unwrap().is_error);
    pool.close().await;
}

/// X6: a server that fails again and again is left alone, and everybody is told until when.
#[tokio::test]
async fn a_server_that_fails_in_a_row_is_refused_for_a_while_and_then_tried_by_one_call() {
    let pool = pool("plain", "breaker_failures = 2\nbreaker_cooldown_sec = 0.4");
    for _ in 0..2 {
        assert!(matches!(call(&pool, "die").await, Err(Error::Unknown { .. })));
    }
    let refused = call(&pool, "echo").await.unwrap_err();
    let Error::NotSent { reason, .. } = &refused else { panic!("{refused}") };
    assert!(
        reason.starts_with("its circuit breaker is open after 2 failures in a row"),
        "{reason}"
    );
    assert!(reason.ends_with("it is tried again in 1 s"), "{reason}");
    let shown = state(&pool);
    assert_eq!(shown.phase, Phase::BreakerOpen);
    let problem = shown.problem.unwrap();
    assert!(problem.contains("exited with code 9"), "the operator is told why: {problem}");
    assert!(problem.contains("I was not made for this"), "in the server's words: {problem}");
    // Refused until the time is up; the first call after that decides.
    let started = perihelion::clock::monotonic();
    while let Err(error) = call(&pool, "echo").await {
        assert!(matches!(&error, Error::NotSent { .. }), "{error}");
        assert!(started.elapsed() < Duration::from_secs(20), "{error}");
        tokio::task::yield_now().await;
    }
    assert_eq!((state(&pool).phase, pool.failure("x")), (Phase::Running, None));
    pool.close().await;
}

/// X6: the menu stands in the prompts of all threads, where nothing that a server wrote may stand unmarked.
#[tokio::test]
async fn the_catalog_marks_a_failing_server_without_quoting_its_output() {
    let dies =
        "breaker_failures = 1\nbreaker_cooldown_sec = 3600\nenv = { API_TOKEN = \"OBEY ME\" }";
    for (mode, tool) in [("dies-at-start", "echo"), ("plain", "die")] {
        let pool = pool(mode, dies);
        call(&pool, tool).await.unwrap_err();
        let message = pool.failure("x").unwrap();
        assert!(message.starts_with("its circuit breaker is open after 1 failures"), "{message}");
        assert!(message.ends_with(" s") && message.len() < 120, "{message}");
        let refused = call(&pool, "echo").await.unwrap_err().to_string();
        assert!(refused.contains("circuit breaker is open"), "{refused}");
        assert!(!refused.contains("stderr"), "nor is an agent told: {refused}");
        pool.close().await;
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_started_opens_its_breaker_but_discovery_still_tries_it() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let more = format!(
        "breaker_failures = 2\nbreaker_cooldown_sec = 3600\nenv = {{ START_LOG = {:?} }}",
        log.path()
    );
    let pool = pool("dies-at-start", &more);
    for _ in 0..5 {
        assert!(matches!(call(&pool, "echo").await, Err(Error::NotSent { .. })));
    }
    let starts = || std::fs::read_to_string(log.path()).unwrap().lines().count();
    let after = starts();
    assert!(after <= 4, "a server is started at most twice per attempt: {after}");
    assert!(state(&pool).problem.unwrap().contains("it exited with code 3"));
    assert!(pool.rescan().await.remove(0).outcome.is_err());
    assert!(starts() > after);
    pool.close().await;
}

#[tokio::test]
async fn refusals_and_errors_of_tools_do_not_count_against_a_server() {
    let pool = pool("plain", "breaker_failures = 1");
    for tool in ["fail", "reject", "break", "ask"] {
        let _ = call(&pool, tool).await;
        assert_eq!(pool.failure("x"), None, "{tool}");
    }
    pool.close().await;
}

/// X6
#[tokio::test]
async fn calls_beyond_the_rate_wait_and_calls_with_too_long_a_wait_are_not_sent() {
    let quick = pool("plain", "rate_limit = \"10/s\"");
    let started = perihelion::clock::monotonic();
    for _ in 0..15 {
        assert!(!call(&quick, "echo").await.unwrap().is_error);
    }
    // Ten at once, the others every tenth of a second.
    assert!(started.elapsed() >= Duration::from_millis(499), "{:?}", started.elapsed());
    quick.close().await;
    let slow = pool("plain", "rate_limit = \"1/h\"\ntool_timeout_sec = 5");
    assert!(!call(&slow, "echo").await.unwrap().is_error);
    let error = call(&slow, "echo").await.unwrap_err();
    assert!(
        matches!(&error, Error::NotSent { reason, .. } if reason.contains("rate_limit")),
        "{error}"
    );
    slow.close().await;
}

#[tokio::test]
async fn calls_beyond_the_most_at_once_wait_for_their_turn() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("there");
    let pool = pool("plain", "max_concurrent_calls = 1\ntool_timeout_sec = 60");
    let arguments = json!({ "until": file }).as_object().cloned().unwrap();
    let first = pool.call("x", "linger", arguments, CallContext::default());
    tokio::pin!(first);
    let echo = call(&pool, "echo");
    tokio::pin!(echo);
    let waited = tokio::time::timeout(Duration::from_millis(300), async {
        tokio::select! { biased; _ = &mut first => {}, _ = &mut echo => {} }
    });
    assert!(waited.await.is_err(), "neither has ended");
    std::fs::write(&file, "").unwrap();
    let (first, echo) = tokio::join!(first, echo);
    assert_eq!((first.unwrap().text.as_str(), echo.unwrap().is_error), ("lingered", false));
    pool.close().await;
}

/// S1.09: an agent has the tools that its server has now.
#[tokio::test]
async fn tools_added_while_a_server_runs_are_offered_after_its_notification() {
    let pool = pool("plain", "");
    pool.scan().await;
    assert!(!has_tool(&pool, "grown-0"));
    call(&pool, "grow").await.unwrap();
    until(&pool, |pool| has_tool(pool, "grown-0")).await;
    pool.close().await;
}

#[tokio::test]
async fn tools_that_appear_without_a_word_are_found_when_the_list_is_stale() {
    let pool = pool("plain", "definitions_ttl_sec = 0.3");
    pool.scan().await;
    call(&pool, "grow-in-secret").await.unwrap();
    until(&pool, |pool| has_tool(pool, "grown-0")).await;
    pool.close().await;
}

/// X6
#[tokio::test]
async fn output_of_a_server_during_shutdown_is_read_to_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let file = table("x", "speaks-at-the-end", &format!("env = {{ END_LOG = {log:?} }}"));
    let file = ServersFile::parse("f".as_ref(), &file, &|_| None).unwrap();
    let patience = Duration::from_secs(30);
    let pool = Pool::new(file, PoolOptions { patience, ..PoolOptions::default() });
    pool.scan().await;
    pool.close().await;
    assert_eq!(std::fs::read_to_string(log).unwrap(), "ended\n");
}
