//! Looking after threads: no model and no servers are needed.

use perihelion::llm::scripted::Rule;
use serde_json::Value;

use super::world::{World, answering, clarify, first, reading};

/// A machine with one finished thread `t`, whose model and servers are gone.
async fn world_with_a_thread() -> World {
    let mut world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    world.set("OPENAI_BASE_URL", "");
    world.set("OPENAI_API_KEY", "");
    world.write("mcp-servers.toml", "this is no servers file");
    world
}

/// X3
#[tokio::test]
async fn a_thread_is_listed_shown_and_read_at_any_step() {
    let world = world_with_a_thread().await;
    let list = world.run(&["threads"]).await.code(0);
    assert!(list.stdout.contains(" t ") && list.stdout.contains("done"), "{list:?}");
    let show = world.run(&["threads", "show", "t", "--json"]).await.code(0).json();
    assert_eq!(show["runs"][0]["status"], "done");
    assert_eq!(show["interrupts"], Value::Array(Vec::new()));

    let history = world.run(&["threads", "history", "t", "--json"]).await.code(0).json();
    let steps = history.as_array().unwrap();
    let nodes: Vec<&str> =
        steps.iter().rev().filter_map(|step| step["nodes"][0].as_str()).collect();
    assert_eq!(nodes, ["preprocess", "supervisor", "mcp_agent_files", "supervisor", "qa"]);
    assert_eq!(steps[0]["next"], Value::Array(Vec::new()));
    let page =
        world.run(&["threads", "history", "t", "--before", "3", "--limit", "1", "--json"]).await;
    assert_eq!(page.code(0).json()[0]["step"], 2);

    let early = world.run(&["threads", "state", "t", "--at", "3", "--json"]).await.code(0).json();
    assert_eq!(early["next"][0], "mcp_agent_files");
    assert!(early["state"]["answer"].is_null());
    let late = world.run(&["threads", "state", "t", "--json"]).await.code(0).json();
    assert_eq!(late["state"]["answer"], "It is 42 [1].");
    let summary = world.run(&["threads", "state", "t"]).await.code(0);
    assert!(summary.stdout.contains("step 6 of 6, next: the end"), "{summary:?}");
}

/// X3
#[tokio::test]
async fn a_fork_continues_from_its_step_and_the_source_stays_as_it_is() {
    let world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    let args = ["threads", "fork", "t", "--at", "3", "--thread", "what-if"];
    let fork = world.run(&args).await.code(0);
    let id = fork.stdout.trim().to_owned();
    assert!(uuid::Uuid::parse_str(&id).is_ok(), "{id}");
    fork.says("to continue from there, run: perihelion resume what-if");
    let done = world.run(&["resume", "what-if", "-q"]).await.code(0);
    assert!(done.stdout.contains("42"), "{done:?}");
    let show = world.run(&["threads", "show", "what-if", "--json"]).await.code(0).json();
    assert_eq!(show["forked_from"]["step"], 3);
    let source = world.run(&["threads", "show", "t", "--json"]).await.code(0).json();
    assert_eq!((&source["steps"], source["runs"].as_array().unwrap().len()), (&6.into(), 1));
    // A taken name is not taken again.
    world.run(&args).await.code(2).says("exists already");
}

#[tokio::test]
async fn a_thread_travels_as_a_file_and_through_a_pipe() {
    let world = world_with_a_thread().await;
    world
        .run(&["threads", "export", "t", "--output", "t.jsonl"])
        .await
        .code(0)
        .says("wrote 6 steps");
    let piped = world.run(&["threads", "export", "t"]).await.code(0);
    assert_eq!(piped.stdout, world.read("t.jsonl"));
    world.run(&["threads", "export", "t", "--json"]).await.code(2).says("unexpected argument");
    let there = "sqlite:other.db";
    let import = world.run(&["threads", "import", "t.jsonl", "--database", there]).await.code(0);
    let state = ["threads", "state", "t", "--json"];
    let here = world.run(&state).await.code(0).stdout;
    let over_there = world.run(&[&state[..], &["--database", there]].concat()).await.code(0).stdout;
    assert_eq!(here, over_there, "{import:?}");

    world.run(&["threads", "import", "t.jsonl"]).await.code(2).says("exists already");
    world.run(&["threads", "import", "nowhere.jsonl"]).await.code(2).says("nowhere.jsonl");
    let cut: String =
        world.read("t.jsonl").lines().take(3).map(|line| format!("{line}\n")).collect();
    let third = ["threads", "import", "-", "--database", "sqlite:third.db"];
    world.run_with_input(&third, &cut).await.code(2).says("cannot import the thread");
    world
        .run(&["threads", "export", "t", "--output", "no/such/t.jsonl"])
        .await
        .code(1)
        .says("no/such");
}

#[tokio::test]
async fn a_shortened_thread_preserves_its_state_and_continues() {
    let world = World::new(answering()).await;
    for question in ["one", "two", "three"] {
        world.run(&["run", question, "--thread", "t", "-q"]).await.code(0);
    }
    let state = ["threads", "state", "t", "--json"];
    let before = world.run(&state).await.code(0).stdout;
    let prune = ["threads", "prune", "--keep-steps", "2", "t"];
    world.run(&prune).await.code(0).says("now begins at step 11");
    assert_eq!(world.run(&state).await.code(0).stdout, before);
    let history = world.run(&["threads", "history", "t", "--json"]).await.code(0).json();
    assert_eq!(history.as_array().unwrap().len(), 2);
    world.run(&["threads", "state", "t", "--at", "3"]).await.code(2).says("no step 3");
    world.run(&prune).await.code(0);
    world.run(&["run", "four", "--thread", "t", "-q"]).await.code(0);
}

#[tokio::test]
async fn pruning_by_age_deletes_finished_threads_and_leaves_waiting_ones() {
    let asks = Rule::new(clarify("Which?")).contains("unclear");
    let script = first(asks, answering());
    let world = World::new(script).await;
    world.run(&["run", "clear", "--thread", "done", "-q"]).await.code(0);
    world.run(&["run", "unclear", "--thread", "waits", "-q"]).await.code(3);
    let old = world.run(&["threads", "prune", "--older-than", "1d", "--json"]).await.code(0).json();
    assert_eq!(old["deleted"], Value::Array(Vec::new()));
    let dry = ["threads", "prune", "--older-than", "0s", "--dry-run"];
    world.run(&dry).await.code(0).says("would delete 1 thread; skipped 1 running or interrupted");
    world.run(&["threads", "prune", "--older-than", "0s"]).await.code(0).says("deleted 1 thread");
    let left = world.run(&["threads", "--json"]).await.code(0).json();
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(left[0]["title"], "waits");
}

#[tokio::test]
async fn a_read_only_database_can_be_read_and_refuses_writes() {
    let has_bubblewrap = std::process::Command::new("bwrap").arg("--version").output().is_ok();
    assert!(
        has_bubblewrap || std::env::var_os("CI").is_none(),
        "install bubblewrap: it makes the file system read-only"
    );
    if !has_bubblewrap {
        return;
    }
    let world = world_with_a_thread().await;
    for args in [
        &["threads"][..],
        &["threads", "show", "t"],
        &["threads", "history", "t"],
        &["threads", "state", "t"],
        &["threads", "export", "t"],
        &["replay", "t"],
        &["trace", "t"],
        &["diff", "t", "t"],
    ] {
        let there = world.run(args).await.code(0);
        assert_eq!(world.run_read_only(args).await.code(0).stdout, there.stdout, "{args:?}");
    }
    let fork = ["threads", "fork", "t", "--at", "3", "--thread", "u"];
    world.run_read_only(&fork).await.code(1).says("is read-only. Copy it");
}
