//! Changes of the servers file while servers run and calls are in flight.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use perihelion::mcp::{CallContext, Error, Pool, PoolOptions, ServersFile, ToolHost};
use serde_json::{Map, json};

use crate::support::hostile::{assert_marked, assert_none_left, new_mark, table};

fn file(text: &str) -> ServersFile {
    ServersFile::parse("f".as_ref(), text, &|name| std::env::var(name).ok()).unwrap()
}

fn pool_of(text: &str) -> Pool {
    let patience = Duration::from_millis(300);
    Pool::new(file(text), PoolOptions { patience, ..PoolOptions::default() })
}

async fn pid(pool: &Pool, server: &str) -> String {
    pool.call(server, "pid", Map::new(), CallContext::default()).await.unwrap().text
}

/// S1.09, X6: unchanged servers keep running over a reload.
#[tokio::test]
async fn a_reload_keeps_unchanged_servers_and_ends_removed_ones() {
    let (mark, line) = new_mark();
    let kept = table("x", "plain", "");
    let pool = pool_of(&(kept.clone() + &table("gone", "plain", &line)));
    pool.scan().await;
    let before = pid(&pool, "x").await;
    assert_marked(&mark, 1).await;
    let reloaded = pool.reload(file(&(kept + &table("new", "plain", ""))));
    assert_eq!((reloaded.kept, reloaded.added), (vec!["x".to_owned()], vec!["new".to_owned()]));
    assert_eq!((reloaded.removed, reloaded.replaced), (vec!["gone".to_owned()], vec![]));
    assert_none_left(&mark).await;
    assert_eq!(pool.names(), ["x", "new"]);
    assert_eq!(pid(&pool, "x").await, before, "the same process");
    let error = pool.call("gone", "echo", Map::new(), CallContext::default()).await.unwrap_err();
    assert_eq!(error, Error::UnknownServer("gone".into()));
    pool.close().await;
}

#[tokio::test]
async fn a_call_in_flight_finishes_on_the_old_server_while_the_new_one_takes_the_next() {
    let (mark, line) = new_mark();
    let directory = tempfile::tempdir().unwrap();
    let until = directory.path().join("there");
    let pool = pool_of(&table("x", "plain", &line));
    let old = pid(&pool, "x").await;
    let arguments = json!({ "until": until }).as_object().cloned().unwrap();
    let lingering = pool.call("x", "linger", arguments, CallContext::default());
    let reload = async {
        let reloaded =
            pool.reload(file(&table("x", "plain", &format!("{line}\ntool_timeout_sec = 59"))));
        assert_eq!(reloaded.replaced, ["x"]);
        assert_ne!(pid(&pool, "x").await, old);
        assert_marked(&mark, 2).await;
        std::fs::write(&until, "").unwrap();
    };
    let (outcome, ()) = tokio::join!(lingering, reload);
    assert_eq!(outcome.unwrap().text, "lingered");
    assert_marked(&mark, 1).await;
    pool.close().await;
    assert_none_left(&mark).await;
}

#[tokio::test]
async fn an_agent_stays_in_the_catalog_while_its_server_is_replaced() {
    let pool = pool_of(&table("x", "plain", ""));
    pool.scan().await;
    pool.reload(file(&table("x", "plain", "disabled_tools = [\"echo\"]")));
    let known = pool.known().remove(0);
    assert!(known.tools.len() > 10 && known.tools.iter().all(|tool| tool.name != "echo"));
    pool.reload(file(&table("x", "talks", "")));
    assert_eq!(pool.known().len(), 1, "until the new one was asked");
    assert!(pool.look().await.remove(0).outcome.is_ok());
    pool.reload(file(&table("x", "dies-at-start", "")));
    assert_eq!(pool.known().len(), 1);
    assert!(pool.look().await.remove(0).outcome.is_err());
    assert_eq!(pool.known(), []);
    pool.close().await;
}

#[tokio::test]
async fn a_pool_that_is_closed_or_dropped_takes_what_still_drains_with_it() {
    for is_closed in [true, false] {
        let (mark, line) = new_mark();
        let pool = std::sync::Arc::new(pool_of(&table("x", "plain", &line)));
        let directory = tempfile::tempdir().unwrap();
        let begun = directory.path().join("begun");
        let until = directory.path().join("never");
        let calling = pool.clone();
        let arguments = json!({ "begun": begun, "until": until }).as_object().cloned().unwrap();
        let hanging = tokio::spawn(async move {
            calling.call("x", "linger", arguments, CallContext::default()).await
        });
        while !begun.exists() {
            tokio::task::yield_now().await;
        }
        pool.reload(ServersFile::default());
        if is_closed {
            pool.close().await;
            let _ = hanging.await;
        } else {
            hanging.abort();
            let _ = hanging.await;
            drop(pool);
        }
        assert_none_left(&mark).await;
    }
}

/// X6: a thousand reloads under load leave nothing behind, fail no call and touch no server that stayed the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_reloads_under_load_leave_no_process_behind() {
    const RELOADS: usize = 1000;
    let (mark, line) = new_mark();
    let log = tempfile::NamedTempFile::new().unwrap();
    let moving = format!("env = {{ MARK = {mark:?}, START_LOG = {:?} }}", log.path());
    let text = |changed: usize, third: bool| {
        let mut text = table("steady", "plain", &line);
        text +=
            &table("moving", "plain", &format!("{moving}\ntool_timeout_sec = {}", 60 + changed));
        if third {
            text += &table("fleeting", "plain", &line);
        }
        text
    };
    let cache = tempfile::tempdir().unwrap();
    let options = PoolOptions {
        patience: Duration::from_millis(300),
        cache: Some(cache.path().to_owned()),
        ..PoolOptions::default()
    };
    let pool = Pool::new(file(&text(0, true)), options);
    pool.scan().await;
    let steady = pid(&pool, "steady").await;
    let done = AtomicBool::new(false);
    let calls = AtomicUsize::new(0);
    let load = async |server: &str| {
        while !done.load(Ordering::Relaxed) {
            match pool.call(server, "echo", Map::new(), CallContext::default()).await {
                Ok(outcome) => assert!(!outcome.is_error),
                Err(Error::UnknownServer(gone)) => assert_eq!(gone, "fleeting"),
                Err(error) => panic!("{error}"),
            }
            calls.fetch_add(usize::from(server == "moving"), Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    };
    let reloads = async {
        for number in 1..=RELOADS {
            pool.reload(file(&text(number, number % 10 != 0)));
            // Every so often the load gets through to what was just replaced.
            let seen = calls.load(Ordering::Relaxed);
            while number % 20 == 0 && calls.load(Ordering::Relaxed) < seen + 4 {
                tokio::task::yield_now().await;
            }
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(load("steady"), load("moving"), load("moving"), load("fleeting"), reloads);
    assert_eq!(pid(&pool, "steady").await, steady, "the same process throughout");
    let starts = std::fs::read_to_string(log.path()).unwrap().lines().count();
    assert!(starts > RELOADS / 40, "replaced while it ran: {starts}");
    pid(&pool, "moving").await;
    pool.close().await;
    assert_none_left(&mark).await;
}

/// X6: what a caller decided under milder rules than those of now is not sent.
#[tokio::test]
async fn a_call_decided_on_before_its_tool_was_gated_is_not_sent() {
    let pool = pool_of(&table("x", "plain", ""));
    pool.scan().await;
    let free = pool.call_policy("x", "echo").unwrap();
    pool.reload(file(&table("x", "plain", "tools.echo.approval_mode = \"prompt\"")));
    let now = pool.call_policy("x", "echo").unwrap();
    assert!(now.needs_approval && !free.needs_approval, "known without asking the server");
    let call = async |under| {
        let context = CallContext { under: Some(under), ..CallContext::default() };
        pool.call("x", "echo", Map::new(), context).await
    };
    let error = call(free).await.unwrap_err();
    assert!(matches!(&error, Error::NotSent { .. }), "{error}");
    assert!(error.to_string().contains("the rules for this tool became stricter"), "{error}");
    call(free.stricter(now).allowed()).await.unwrap();
    pool.close().await;
}
