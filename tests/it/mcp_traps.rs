//! Every trap that an MCP server over stdio can lay, laid by the hostile fixture.

use std::{collections::BTreeSet, time::Duration};

use perihelion::mcp::{
    CallContext, Error, Pool, PoolOptions, ServerInfo, ServersFile, ToolHost, ToolOutcome,
};
use serde_json::{Map, Value, json};

use crate::support::hostile::{assert_marked, assert_none_left, marked, new_mark, program, table};

fn pool_of(file: &str) -> Pool {
    let env = |name: &str| match name {
        "OPENAI_API_KEY" => Some("sk-of-the-operator".to_owned()),
        "SERVER_TOKEN" => Some("token-of-the-server".to_owned()),
        "WORKSPACE" => Some("/home/ada/work".to_owned()),
        _ => std::env::var(name).ok(),
    };
    let file = ServersFile::parse("mcp-servers.toml".as_ref(), file, &env).unwrap();
    let patience = Duration::from_millis(300);
    Pool::new(file, PoolOptions { patience, ..PoolOptions::default() })
}

fn pool(mode: &str, more: &str) -> Pool {
    pool_of(&table("x", mode, more))
}

async fn scan(pool: &Pool) -> Result<ServerInfo, Error> {
    let mut statuses = pool.scan().await;
    assert_eq!(statuses.len(), 1);
    statuses.remove(0).outcome
}

async fn call(pool: &Pool, tool: &str) -> Result<ToolOutcome, Error> {
    pool.call("x", tool, Map::new(), CallContext::default()).await
}

/// S1.09
#[tokio::test]
async fn a_scanned_server_reports_its_tools_and_identity() {
    let pool = pool(
        "plain",
        "tools.lie.effect = \"read_only\"\ntools.fail.approval_mode = \"prompt\"\n\
         repeatable = [\"echo\"]\ndisabled_tools = [\"hang\"]\ntools.gone.effect = \"write\"",
    );
    let info = scan(&pool).await.unwrap();
    assert_eq!(info.description, "Does what it should not.");
    assert_eq!((&*info.server_version, &*info.protocol_version), ("hostile 1.2.3", "2025-11-25"));
    let tool = |name: &str| info.tools.iter().find(|tool| tool.name == name).unwrap();
    assert!(tool("lie").repeatable && tool("echo").repeatable && !tool("fail").repeatable);
    assert!(tool("fail").needs_approval && !tool("echo").needs_approval);
    assert_eq!(tool("lie").title.as_deref(), Some("Liar"));
    assert_eq!(tool("lie").annotations.read_only, Some(true));
    let rejected: Vec<_> = info.rejected_tools.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(rejected, ["hang", "gone"]);
    let error = call(&pool, "hang").await.unwrap_err();
    assert_eq!(error, Error::UnknownTool { server: "x".into(), tool: "hang".into() });
    pool.close().await;
}

/// X2: the same key on every attempt of a call.
#[tokio::test]
async fn a_call_carries_its_arguments_its_idempotency_key_and_the_trace() {
    let pool = pool("plain", "");
    let arguments = json!({"path": "/tmp/ü"}).as_object().cloned().unwrap();
    let context = CallContext {
        idempotency_key: "key-1".into(),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01".into()),
        ..CallContext::default()
    };
    let outcome = pool.call("x", "echo", arguments, context.clone()).await.unwrap();
    let seen: Value = serde_json::from_str(&outcome.text).unwrap();
    assert_eq!(seen["arguments"], json!({"path": "/tmp/ü"}));
    assert_eq!(seen["meta"]["dev.perihelion/idempotency-key"], "key-1");
    assert_eq!(seen["meta"]["traceparent"], context.traceparent.unwrap());
    pool.close().await;
}

/// X2
#[tokio::test]
async fn a_server_killed_mid_call_leaves_the_outcome_unknown_and_is_started_again_for_the_next_call()
 {
    let pool = pool("plain", "");
    let error = call(&pool, "die").await.unwrap_err();
    let Error::Unknown { reason, .. } = &error else { panic!("{error}") };
    assert!(reason.contains("exited with code 9"), "{reason}");
    assert!(reason.contains("I was not made for this"), "{reason}");
    assert!(!call(&pool, "echo").await.unwrap().is_error);
    pool.close().await;
}

#[tokio::test]
async fn an_answer_over_the_line_limit_ends_as_unknown_and_the_server_stays_usable() {
    let pool = pool("plain", "tool_timeout_sec = 1.5\nbreaker_failures = 1000");
    let error = call(&pool, "overlong-line").await.unwrap_err();
    assert!(matches!(&error, Error::Unknown { reason, .. } if reason.contains("1.5 s")), "{error}");
    // A busy machine takes its time to read the line to its end.
    let started = perihelion::clock::monotonic();
    while let Err(error) = call(&pool, "echo").await {
        assert!(started.elapsed() < Duration::from_secs(60), "{error}");
    }
    pool.close().await;
}

/// X6
#[tokio::test]
async fn a_result_over_the_limit_becomes_an_error_that_names_the_limit() {
    let pool = pool("plain", "max_result_bytes = 50_000");
    let outcome = call(&pool, "large").await.unwrap();
    assert!(outcome.is_error && outcome.text.contains("at most 50000"), "{}", outcome.text);
    pool.close().await;
}

#[tokio::test]
async fn a_repeated_cursor_ends_the_list_with_the_tools_so_far() {
    let pool = pool("repeats-the-cursor", "");
    let info = scan(&pool).await.unwrap();
    assert!(info.tools.iter().any(|tool| tool.name == "echo"));
    assert!(info.rejected_tools.iter().any(|(_, reason)| reason.contains("repeated a cursor")));
    pool.close().await;
}

#[tokio::test]
async fn an_endless_tool_list_is_abandoned() {
    let pool = pool("never-ends-the-list", "");
    let error = scan(&pool).await.unwrap_err().to_string();
    assert!(error.ends_with("does not end after 100 pages"), "{error}");
    pool.close().await;
}

#[tokio::test]
async fn malformed_tools_are_reported_and_the_rest_stay() {
    let pool = pool("lists-nonsense", "");
    let info = scan(&pool).await.unwrap();
    assert!(info.tools.iter().any(|tool| tool.name == "lie"));
    let rejected: Vec<_> =
        info.rejected_tools.iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
    assert!(info.tools.iter().any(|tool| tool.name == "unschematic"), "its odd type is left out");
    assert_eq!(rejected.len(), 5, "{rejected:?}");
    assert!(rejected[0].starts_with("shapeless: its inputSchema cannot be used"), "{rejected:?}");
    assert!(rejected[3].starts_with("echo: listed twice"), "{rejected:?}");
    assert!(rejected[4].starts_with("long: its definition is longer"), "{rejected:?}");
    assert!(!call(&pool, "echo").await.unwrap().is_error);
    pool.close().await;
}

#[tokio::test]
async fn an_unknown_content_block_costs_only_itself() {
    let pool = pool("plain", "");
    let outcome = call(&pool, "odd-content").await.unwrap();
    assert!(!outcome.is_error);
    assert_eq!(
        outcome.text,
        "before\n[content of a kind not known here, left out: hologram]\nafter"
    );
    pool.close().await;
}

#[tokio::test]
async fn a_server_that_never_answers_initialize_times_out_and_stops_no_other() {
    let file = table("mute", "never-initializes", "startup_timeout_sec = 0.6")
        + &table("good", "plain", "")
        + &table("off", "plain", "enabled = false");
    let pool = pool_of(&file);
    let statuses = pool.scan().await;
    let names: Vec<_> = statuses.iter().map(|status| status.name.as_str()).collect();
    assert_eq!(names, ["mute", "good"]);
    let error = statuses[0].outcome.as_ref().unwrap_err();
    assert!(matches!(error, Error::Start { reason, .. } if reason.contains("0.6 s")), "{error}");
    assert!(statuses[1].outcome.is_ok());
    let error = pool.call("mute", "echo", Map::new(), CallContext::default()).await.unwrap_err();
    assert!(matches!(&error, Error::NotSent { .. }), "{error}");
    let error = pool.call("off", "echo", Map::new(), CallContext::default()).await.unwrap_err();
    assert_eq!(error, Error::UnknownServer("off".into()));
    pool.close().await;
}

#[tokio::test]
async fn a_server_that_ignores_discover_is_initialized_with_the_older_protocol() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let line = format!("startup_timeout_sec = 3\nenv = {{ START_LOG = {:?} }}", log.path());
    let pool = pool("ignores-discover", &line);
    let starts = || std::fs::read_to_string(log.path()).unwrap().lines().count();
    assert_eq!(scan(&pool).await.unwrap().protocol_version, "2025-11-25");
    assert_eq!(starts(), 1);
    // The era is remembered: after a death the server is not asked to discover again.
    assert!(matches!(call(&pool, "die").await, Err(Error::Unknown { .. })));
    assert!(!call(&pool, "echo").await.unwrap().is_error);
    assert_eq!(starts(), 2);
    pool.close().await;
}

#[tokio::test]
async fn a_flood_on_stderr_does_not_block_the_server() {
    let pool = pool("floods-stderr", "");
    assert!(!call(&pool, "echo").await.unwrap().is_error);
    pool.close().await;
}

#[tokio::test]
async fn noise_on_stdout_is_passed_over() {
    let pool = pool("talks", "");
    assert!(!call(&pool, "echo").await.unwrap().is_error);
    pool.close().await;
}

#[tokio::test]
async fn a_server_that_dies_at_start_is_reported_with_its_last_words_but_not_its_secrets() {
    let pool = pool("dies-at-start", "env = { API_TOKEN = \"${SERVER_TOKEN}\" }");
    let error = scan(&pool).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot start the MCP server x: "), "{error}");
    assert!(error.contains("it exited with code 3"), "{error}");
    assert!(error.contains("cannot reach the database with [redacted]"), "{error}");
    pool.close().await;
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let pool = pool_of("[mcp_servers.x]\ncommand = \"no-such-program-here\"");
    let error = scan(&pool).await.unwrap_err().to_string();
    assert!(error.contains("cannot run no-such-program-here"), "{error}");
    pool.close().await;
    let pool = pool_of("[mcp_servers.x]\ncommand = \"true\"\ncwd = \"no/such/place\"");
    let error = scan(&pool).await.unwrap_err().to_string();
    assert!(error.ends_with("does not exist (see cwd in its table): no/such/place"), "{error}");
    pool.close().await;
}

#[tokio::test]
async fn structured_content_that_breaks_its_schema_becomes_an_error_with_the_reason() {
    let pool = pool("plain", "");
    let outcome = call(&pool, "lie").await.unwrap();
    assert!(outcome.is_error && outcome.structured.is_none());
    assert!(outcome.text.contains("breaks the tool's own output schema"), "{}", outcome.text);
    assert!(outcome.text.contains("at /sum"), "{}", outcome.text);
    pool.close().await;
}

#[tokio::test]
async fn a_server_sees_only_its_configured_variables_and_no_secret_of_the_operator() {
    let pool = pool(
        "plain",
        "env = { LEVEL = \"${NO_SUCH_LEVEL:-quiet}\" }\nenv_vars = [\"SERVER_TOKEN\", \"NOT_SET\", \"WORKSPACE\"]",
    );
    let outcome = call(&pool, "environment").await.unwrap();
    let names: BTreeSet<_> =
        outcome.text.lines().filter_map(|line| line.split('=').next()).collect();
    assert!(names.contains("PATH") && names.contains("SERVER_TOKEN"), "{names:?}");
    assert!(outcome.text.contains("LEVEL=quiet"));
    assert!(
        !names.contains("OPENAI_API_KEY") && !names.contains("CARGO_MANIFEST_DIR"),
        "{names:?}"
    );
    // What it was given to know does not come back into prompts and stores.
    assert!(outcome.text.contains("SERVER_TOKEN=[redacted]"));
    // What is no secret does, so that it can be used.
    assert!(outcome.text.contains("WORKSPACE=/home/ada/work"));
    pool.close().await;
}

/// X6
#[tokio::test]
async fn a_hanging_call_ends_as_unknown_and_the_server_is_asked_to_stop() {
    let pool = pool("plain", "tool_timeout_sec = 0.3");
    let error = call(&pool, "hang").await.unwrap_err();
    assert!(matches!(&error, Error::Unknown { reason, .. } if reason.contains("0.3 s")), "{error}");
    assert_cancelled(&pool, 1).await;
    pool.close().await;
}

#[tokio::test]
async fn a_call_whose_caller_disappears_is_cancelled_at_the_server() {
    let pool = pool("plain", "");
    scan(&pool).await.unwrap();
    let hanging = call(&pool, "hang");
    assert!(tokio::time::timeout(Duration::from_millis(300), hanging).await.is_err());
    assert_cancelled(&pool, 1).await;
    pool.close().await;
}

/// Asks until the server has heard of the cancellation, which travels beside the calls.
async fn assert_cancelled(pool: &Pool, times: usize) {
    let started = perihelion::clock::monotonic();
    while call(pool, "cancellations").await.unwrap().text != times.to_string() {
        assert!(started.elapsed() < Duration::from_secs(10), "the server heard of no cancellation");
    }
}

#[tokio::test]
async fn a_server_that_stops_reading_cannot_hold_a_call() {
    let pool = pool("goes-deaf", "tool_timeout_sec = 0.3");
    let arguments = json!({"text": "x".repeat(1_000_000)}).as_object().cloned().unwrap();
    let error = pool.call("x", "echo", arguments, CallContext::default()).await.unwrap_err();
    assert!(matches!(&error, Error::Unknown { .. }), "{error}");
    pool.close().await;
}

/// X6
#[tokio::test]
async fn a_server_that_asks_without_end_and_reads_no_answer_is_ended_with_that_reason() {
    let pool = pool("plain", "");
    let error = call(&pool, "ask-without-end").await.unwrap_err().to_string();
    assert!(error.contains("requests without reading the answers"), "{error}");
    // Started again it serves again.
    call(&pool, "echo").await.unwrap();
    pool.close().await;
}

#[tokio::test]
async fn an_unreadable_answer_is_reported_at_once_with_the_reason() {
    let pool = pool("plain", "");
    for (tool, why) in [("garble", "it is not UTF-8"), ("nest", "it nests values deeper")] {
        let outcome = call(&pool, tool).await.unwrap();
        assert!(outcome.is_error && outcome.text.contains(why), "{}", outcome.text);
    }
    pool.close().await;
}

#[tokio::test]
async fn progress_keeps_a_long_call_alive_but_not_beyond_its_total_limit() {
    let lively = pool("plain", "tool_timeout_sec = 0.8\ntool_total_timeout_sec = 60");
    assert_eq!(call(&lively, "progress").await.unwrap().text, "arrived");
    lively.close().await;
    let strict = pool("plain", "tool_timeout_sec = 0.5\ntool_total_timeout_sec = 0.6");
    let error = call(&strict, "progress").await.unwrap_err();
    assert!(matches!(&error, Error::Unknown { .. }), "{error}");
    strict.close().await;
}

#[tokio::test]
async fn progress_of_a_server_is_passed_on_as_one_line() {
    let pool = pool("plain", "");
    let (progress, mut reports) = tokio::sync::mpsc::channel(1);
    let context = CallContext { progress: Some(progress), ..CallContext::default() };
    let call = pool.call("x", "progress", Map::new(), context);
    let (outcome, first) = tokio::join!(call, reports.recv());
    assert_eq!(outcome.unwrap().text, "arrived");
    let first = first.unwrap();
    assert_eq!(first.total, Some(20.0));
    assert_eq!(first.message, format!("copying row {}", first.done));
    pool.close().await;
}

#[tokio::test]
async fn an_error_of_the_tool_is_data_and_a_refusal_is_an_error() {
    let pool = pool("plain", "");
    let failed = call(&pool, "fail").await.unwrap();
    assert_eq!((failed.is_error, &*failed.text), (true, "no such row"));
    let broken = call(&pool, "break").await.unwrap();
    assert!(broken.is_error && broken.text.ends_with("division by zero"), "{}", broken.text);
    let error = call(&pool, "reject").await.unwrap_err();
    assert!(
        matches!(&error, Error::Refused { reason, .. } if reason.contains("missing argument: path"))
    );
    let mumbled = call(&pool, "mumble").await.unwrap();
    assert!(mumbled.is_error, "{}", mumbled.text);
    pool.close().await;
}

#[tokio::test]
async fn a_question_or_task_without_anyone_to_answer_or_follow_it_has_an_unknown_outcome() {
    let pool = pool("plain", "");
    let error = call(&pool, "ask").await.unwrap_err();
    assert!(matches!(&error, Error::Unknown { reason, .. } if reason.contains("input")), "{error}");
    let error = call(&pool, "task").await.unwrap_err();
    assert!(matches!(&error, Error::Unknown { reason, .. } if reason.contains("task")), "{error}");
    pool.close().await;
}

#[tokio::test]
async fn a_server_that_ignores_the_end_of_its_input_and_sigterm_is_killed() {
    let (mark, line) = new_mark();
    let program = program();
    let script = format!("trap '' TERM; exec {} ignores-the-end", program.display());
    let pool = pool_of(&format!(
        "[mcp_servers.x]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n{line}\n"
    ));
    scan(&pool).await.unwrap();
    assert_marked(&mark, 1).await;
    pool.close().await;
    assert_none_left(&mark).await;
}

/// X6
#[tokio::test]
async fn after_close_no_process_is_left_not_even_a_grandchild_that_left_the_group() {
    let (mark, line) = new_mark();
    let file = table("x", "plain", &line) + &table("y", "ignores-the-end", &line);
    let pool = pool_of(&file);
    pool.scan().await;
    call(&pool, "leave-a-child").await.unwrap();
    call(&pool, "leave-a-stray").await.unwrap();
    assert_marked(&mark, 4).await;
    pool.close().await;
    assert_none_left(&mark).await;
    let error = call(&pool, "echo").await.unwrap_err();
    assert!(matches!(&error, Error::NotSent { .. }), "{error}");
    assert!(marked(&mark).is_empty(), "a closed pool starts nothing");
}

#[tokio::test]
async fn a_pool_that_is_only_dropped_leaves_no_process_either() {
    let (mark, line) = new_mark();
    let pool = pool("ignores-the-end", &line);
    call(&pool, "leave-a-child").await.unwrap();
    call(&pool, "leave-a-stray").await.unwrap();
    assert_marked(&mark, 3).await;
    drop(pool);
    assert_none_left(&mark).await;
}

#[tokio::test]
async fn a_grandchild_of_a_server_that_died_is_ended_with_it() {
    let (mark, line) = new_mark();
    let pool = pool("plain", &line);
    let error = call(&pool, "die-leaving-a-child").await.unwrap_err();
    assert!(matches!(&error, Error::Unknown { .. }), "{error}");
    assert_none_left(&mark).await;
    pool.close().await;
}

#[tokio::test]
async fn a_start_that_is_abandoned_leaves_no_process() {
    let (mark, line) = new_mark();
    let pool = pool("never-initializes", &line);
    let started = async {
        while marked(&mark).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = pool.scan() => panic!("the server answered"),
        () = started => {}
    }
    assert_none_left(&mark).await;
    pool.close().await;
}

#[tokio::test]
async fn servers_are_started_side_by_side() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let line = format!("env = {{ START_LOG = {:?} }}", log.path());
    let pool =
        pool_of(&["a", "b", "c"].map(|name| table(name, "waits-for-company", &line)).concat());
    for status in pool.scan().await {
        assert!(status.outcome.is_ok(), "{}: {:?}", status.name, status.outcome);
    }
    pool.close().await;
}

#[tokio::test]
async fn the_command_perihelion_means_this_program_in_any_directory() {
    let text = "[mcp_servers.x]\ncommand = \"perihelion\"\nargs = [\"plain\"]\nrequired = true";
    let file = ServersFile::parse("f".as_ref(), text, &|_| None).unwrap();
    let options = PoolOptions { executable: Some(program()), ..PoolOptions::default() };
    let pool = Pool::new(file, options);
    assert_eq!(scan(&pool).await.unwrap().server_version, "hostile 1.2.3");
    assert!(pool.is_required("x") && !pool.is_required("y"));
    pool.close().await;
}

#[tokio::test]
async fn a_pool_can_be_closed_while_a_server_starts() {
    let (mark, line) = new_mark();
    let pool = pool("never-initializes", &line);
    let close = async {
        while marked(&mark).is_empty() {
            tokio::task::yield_now().await;
        }
        pool.close().await;
    };
    let (scanned, ()) = tokio::join!(scan(&pool), close);
    let error = scanned.unwrap_err().to_string();
    assert!(error.ends_with("the connections were closed"), "{error}");
    assert_none_left(&mark).await;
}

#[tokio::test]
async fn servers_are_closed_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    // Each goes when all three know that it is over; one by one, none would go by itself.
    let line = format!("env = {{ END_LOG = {log:?} }}");
    let file = ["a", "b", "c"].map(|name| table(name, "ends-in-company", &line)).concat();
    let file = ServersFile::parse("f".as_ref(), &file, &|_| None).unwrap();
    let patience = Duration::from_secs(30);
    let pool = Pool::new(file, PoolOptions { patience, ..PoolOptions::default() });
    pool.scan().await;
    pool.close().await;
    let well = std::fs::read_to_string(directory.path().join("log.well")).unwrap();
    assert_eq!(well.lines().count(), 3);
}
