//! Threads under people's hands: named briefly, followed, cancelled, changed, asked about on a terminal.

use std::sync::Arc;

use perihelion::checkpoint;
use perihelion::graph::{GraphBuilder, Log, NodeOutput, node_fn};
use perihelion::ids::ThreadId;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::runner::{RunOptions, Runner};
use serde_json::json;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::world::{World, answering, clarify, first, noting, reading, select};

/// A thread without a name is known by its question, and by the end of its id.
#[tokio::test]
async fn threads_have_short_names_and_the_newest_is_the_default() {
    let world = World::new(reading()).await;
    let run =
        world.run(&["run", "What is it, in one long sentence?", "--json"]).await.code(0).json();
    let id = run["thread_id"].as_str().unwrap();
    let short = &id[id.len() - 8..];
    let list = world.run(&["threads"]).await.code(0).stdout;
    let row = list.lines().find(|line| line.contains(short)).unwrap_or_else(|| panic!("{list}"));
    assert!(row.contains("What is it, in one long") && row.contains("done"), "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    for args in [&["threads", "show", short][..], &["threads", "show"], &["threads", "state"]] {
        let args = [args, &["--json"]].concat();
        assert_eq!(world.run(&args).await.code(0).json()["thread_id"], id, "{args:?}");
    }
    assert!(world.run(&["trace"]).await.code(0).stdout.contains("supervisor"));
    assert!(world.run(&["replay", short]).await.code(0).stdout.contains("same bytes"));
    world.run(&["threads", "show", "00000000"]).await.code(2).says("unknown thread: 00000000");
    let more = world.run(&["run", "And now?", "--thread", short, "--json"]).await.code(0).json();
    assert_eq!(more["thread_id"], id, "a part of an id is that thread, not a new name");
}

#[tokio::test]
async fn a_thread_is_new_done_or_crashed_in_the_table_and_in_json() {
    let world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    world.run(&["threads", "fork", "t", "--at", "3", "--thread", "f"]).await.code(0);
    let status = async |name: &str| {
        let shown = world.run(&["threads", "show", name, "--json"]).await.code(0).json();
        shown["status"].as_str().unwrap().to_owned()
    };
    assert_eq!((status("t").await, status("f").await), ("done".to_owned(), "new".to_owned()));
    for (word, name) in [("done", "t"), ("new", "f")] {
        let list = world.run(&["threads", "--status", word, "--json"]).await.code(0).json();
        assert_eq!(
            (list.as_array().unwrap().len(), &list[0]["title"]),
            (1, &json!(name)),
            "{word}"
        );
    }
    world.run(&["threads", "--status", "asleep"]).await.code(2).says("crashed");
}

fn hanging() -> Script {
    first(Rule::new(Reply::hang()).role(Role::Supervisor), answering())
}

/// Who has a thread is named, follows are called so, and anybody can end what is under way.
#[tokio::test]
async fn a_busy_thread_names_its_process_is_followed_and_can_be_cancelled() {
    let world = World::new(hanging()).await;
    let run = world.start(&["run", "Hi", "--thread", "t"]);
    let pid = run.id().unwrap();
    world.model.wait_for_requests(1).await;
    let second = world.run(&["run", "And this?", "--thread", "t", "-q"]).await.code(1);
    let second = second.says(&format!("process {pid} on ")).says("your question was not submitted");
    drop(second);
    let list = world.run(&["threads", "--json"]).await.code(0).json();
    assert_eq!(list[0]["status"], "busy");
    let cancelled = world.run(&["threads", "cancel", "t"]).await.code(0);
    cancelled.says(&format!("process {pid} on ")).says("perihelion resume t");
    let list = world.run(&["threads", "--json"]).await.code(0).json();
    assert_eq!(list[0]["status"], "stopped");
    world.run(&["threads", "cancel", "t"]).await.code(1).says("it is not running");
    drop(run);
}

/// Who only follows says so, and has no servers that could be read again.
#[tokio::test]
async fn a_resume_that_only_follows_reports_it() {
    let world = World::new(hanging()).await;
    let run = world.start(&["run", "Hi", "--thread", "t"]);
    let pid = run.id().unwrap();
    world.model.wait_for_requests(1).await;
    let mut follower = world.start(&["resume", "t"]);
    let mut lines = BufReader::new(follower.stderr.take().unwrap()).lines();
    let words = format!("following the run in process {pid} on ");
    loop {
        let line = lines.next_line().await.unwrap();
        if line.unwrap_or_else(|| panic!("it never said: {words}")).contains(&words) {
            break;
        }
    }
    let reloaded = world.run(&["agents", "reload", "--json"]).await.code(0).json();
    let pids: Vec<_> =
        reloaded["processes"].as_array().unwrap().iter().map(|one| &one["pid"]).collect();
    assert_eq!(pids, [&json!(pid)]);
    world.run(&["threads", "cancel", "t"]).await.code(0);
    follower.wait().await.unwrap();
    drop(run);
}

/// A state is changed as a step, and what cannot be meant is refused.
#[tokio::test]
async fn a_state_is_changed_by_hand_as_a_step_of_the_thread() {
    let world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    let done = world.run(&["threads", "update", "t", "--set", "answer=\"Seven.\"", "--json"]).await;
    let done = done.code(0).json();
    assert_eq!((&done["step"], &done["next"]), (&json!(7), &json!([])));
    let state = world.run(&["threads", "state", "t", "--json"]).await.code(0).json();
    assert_eq!(state["state"]["answer"], "Seven.");
    let before = world.run(&["threads", "state", "t", "--at", "6", "--json"]).await.code(0).json();
    assert_eq!(before["state"]["answer"], "It is 42 [1].");
    let args = ["threads", "update", "t", "--set", "answr=x"];
    world.run(&args).await.code(2).says("did you mean answer?");
    world.run(&["threads", "update", "t"]).await.code(2).says("--set FIELD=VALUE");
    let args = ["threads", "update", "t", "--set", "answer=x", "--as", "supervisr"];
    world.run(&args).await.code(2).says("no node of that name: supervisr");
    let agent = ["threads", "update", "t", "--set", "plan=[]", "--as", "mcp_agent_files", "--json"];
    assert_eq!(world.run(&agent).await.code(0).json()["step"], 8, "the refused ones are no steps");
    let next = ["threads", "update", "t", "--set", "plan=[]", "--as", "preprocess", "--json"];
    let next = world.run(&next).await.code(0).json();
    assert_eq!(next["next"], json!(["supervisor"]));
}

perihelion::graph_state! {
    pub struct Own, update OwnUpdate, version 1 {
        lines: Log<String> => append,
    }
}

/// Threads of graphs that this program does not know are read as they are kept.
#[tokio::test]
async fn a_thread_of_another_graph_is_read_as_json_and_never_called_damaged() {
    let world = World::new(answering()).await;
    let url = format!("sqlite:{}", world.path("own.db").display());
    let store = checkpoint::open(&url).await.unwrap();
    let node = node_fn(|_| async {
        Ok(NodeOutput::update(OwnUpdate::new().lines(vec!["one".to_owned()])))
    });
    let graph = GraphBuilder::<Own>::new("own").node("write", node).entry("write");
    let runner = Runner::new(graph.build().unwrap(), Arc::clone(&store));
    let thread = ThreadId::from_name("mine").0;
    runner.create(thread, Some("mine".into())).await.unwrap();
    runner.start(thread, OwnUpdate::new(), RunOptions::default()).await.unwrap();
    store.close().await;

    let at = |args: &[&'static str]| -> Vec<String> {
        let words = args.iter().map(|word| (*word).to_owned());
        words.chain(["--database".to_owned(), url.clone()]).collect()
    };
    let run = async |args: &[&'static str]| {
        let args = at(args);
        world.run(&args.iter().map(String::as_str).collect::<Vec<_>>()).await
    };
    let state = run(&["threads", "state", "mine"]).await.code(0).json();
    assert_eq!((&state["graph"], &state["step"]), (&json!("own"), &json!(2)));
    assert_eq!(state["updates"][1]["update"]["lines"], json!(["one"]), "{state}");
    run(&["threads", "show", "mine"]).await.code(0);
    run(&["threads", "history", "mine"]).await.code(0);
    let fork = run(&["threads", "fork", "mine", "--at", "1"]).await.code(0);
    assert!(!fork.stderr.contains("resume"), "{fork:?}");
    let diff = run(&["diff", "mine", "mine"]).await.code(0);
    assert!(!diff.stderr.contains("backup"), "{diff:?}");
}

/// S3.09: on a terminal a question is put where it comes up, and the run continues with the answer.
#[tokio::test]
async fn a_question_is_asked_and_answered_on_the_terminal() {
    let script =
        first(Rule::new(clarify("Which year?")).role(Role::Supervisor).nth(1), answering());
    let world = World::new(script).await;
    let output = world.run_on_a_terminal(&["run", "Hi", "--thread", "t"], "2024\n").await.code(0);
    assert!(
        output.stdout.contains("Which year?") && output.stdout.contains("Hello."),
        "{output:?}"
    );
    assert!(!output.stdout.contains("answer with:"), "{output:?}");
}

fn noting_twice() -> Script {
    let calls = Reply::call("append_note", json!({ "text": "one" }))
        .and_call("append_note", json!({ "text": "two" }));
    first(
        Rule::new(calls).role(Role::Agent).after_tool_results(0),
        first(Rule::new(select(&["mcp_agent_notes"])).role(Role::Supervisor).nth(1), noting()),
    )
}

/// S3.09: one word allows all further calls of the same tool.
#[tokio::test]
async fn calls_of_a_tool_are_allowed_all_at_once_on_the_terminal() {
    let world = World::new(noting_twice()).await;
    let servers = format!("{}default_tools_approval_mode = \"prompt\"\n", super::world::SERVERS);
    world.write("mcp-servers.toml", &servers);
    let output =
        world.run_on_a_terminal(&["run", "Note both", "--thread", "t"], "a\n").await.code(0);
    assert!(
        output.stdout.contains("approved automatically, as you chose: notes.append_note"),
        "{output:?}"
    );
    assert_eq!(world.read("notes.jsonl").lines().count(), 2, "{output:?}");
    // What a person decides during a run is in the audit log, too.
    let options = SqliteConnectOptions::new().filename(world.path("data/perihelion/perihelion.db"));
    let count = sqlx::query_scalar("SELECT COUNT(*) FROM audit WHERE action = 'approval.approved'");
    let count: i64 = count.fetch_one(&mut options.connect().await.unwrap()).await.unwrap();
    assert_eq!(count, 2);
}

/// Nothing is deleted on a terminal that nobody said yes to.
#[tokio::test]
async fn prune_asks_on_a_terminal_before_it_deletes() {
    let world = World::new(answering()).await;
    for name in ["a", "b", "c"] {
        world.run(&["run", "Hi", "--thread", name, "-q"]).await.code(0);
    }
    let args = ["threads", "prune", "--keep", "1"];
    let no = world.run_on_a_terminal(&args, "n\n").await.code(0);
    assert!(
        no.stdout.contains("would delete 2 threads")
            && no.stdout.contains("no threads were pruned"),
        "{no:?}"
    );
    assert_eq!(world.run(&["threads", "--json"]).await.code(0).json().as_array().unwrap().len(), 3);
    world.run_on_a_terminal(&args, "y\n").await.code(0);
    assert_eq!(world.run(&["threads", "--json"]).await.code(0).json().as_array().unwrap().len(), 1);
    let world = World::new(answering()).await;
    for name in ["a", "b"] {
        world.run(&["run", "Hi", "--thread", name, "-q"]).await.code(0);
    }
    let yes = world.run_on_a_terminal(&[&args[..], &["--yes"]].concat(), "").await.code(0);
    assert!(!yes.stdout.contains("continue?"), "{yes:?}");
}
