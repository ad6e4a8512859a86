//! Replays and comparisons: read from the journal alone.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use sqlx::ConnectOptions as _;

use super::world::{SERVERS, World, answering, approved, clarify, first, noting, reading, select};

/// Takes model and servers away.
fn without_anything(world: &mut World) {
    world.set("OPENAI_BASE_URL", "");
    world.set("OPENAI_API_KEY", "");
    world.write("mcp-servers.toml", "this is no servers file");
}

async fn statement(world: &World, sql: &str) {
    let path = world.path("data/perihelion/perihelion.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut connection = options.connect().await.unwrap();
    let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    assert!(done.rows_affected() > 0, "{sql}");
}

/// X3
#[tokio::test]
async fn a_thread_replays_without_its_model_and_its_servers() {
    let mut world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    world.run(&["run", "And now?", "--thread", "t", "-q"]).await.code(0);
    without_anything(&mut world);
    let asked = world.model.requests().len();
    let replay = world.run(&["replay", "t"]).await.code(0);
    assert!(replay.stdout.contains("each committed the same bytes"), "{replay:?}");
    let whole = world.run(&["replay", "t", "--json"]).await.code(0).json();
    assert_eq!((&whole["from"], &whole["taken"]), (&1.into(), &2.into()));
    assert!(whole["divergence"].is_null());
    let second = world.run(&["replay", "t", "--run", "2", "--json"]).await.code(0).json();
    assert_eq!((&second["from"], &second["left_out"]), (&7.into(), &"other_run".into()));
    assert_eq!(second["replayed"].as_u64(), Some(whole["replayed"].as_u64().unwrap() - 5));
    assert_eq!(world.model.requests().len(), asked, "nothing was asked");
    world.run(&["replay", "t", "--run", "9"]).await.code(2).says("no run 9; it has 2");
    world.run(&["replay", "nobody"]).await.code(2).says("unknown thread: nobody");
}

/// X3
#[tokio::test]
async fn a_changed_prompt_is_shown_at_the_request_it_changes() {
    let mut world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    without_anything(&mut world);
    std::fs::create_dir(world.path("prompts")).unwrap();
    let prompt = concat!(env!("CARGO_MANIFEST_DIR"), "/prompts/reflector.md");
    let prompt = std::fs::read_to_string(prompt).unwrap();
    world.write("prompts/reflector.md", &prompt.replacen("Judge by ", "Always judge by ", 1));
    world.set("PERIHELION_PROMPTS_DIR", "prompts");
    let replay = world.run(&["replay", "t"]).await.code(1);
    for line in [
        "2 steps replayed with the same bytes, then a difference:",
        "step 4, mcp_agent_files: it asked for reflector with another request",
        "request messages[0].content",
        "- Judge by ",
        "+ Always judge by ",
    ] {
        assert!(replay.stdout.contains(line), "missing: {line}\n{}", replay.stdout);
    }
    assert!(replay.stdout.lines().count() < 20, "{}", replay.stdout);
    let json = world.run(&["replay", "t", "--json"]).await.code(1).json();
    assert_eq!(json["divergence"]["about"], "request");
    assert_eq!(json["divergence"]["expected"]["role"], "reflector");
}

#[tokio::test]
async fn a_damaged_journal_is_an_error_that_names_the_step() {
    let world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    statement(
        &world,
        "UPDATE effect SET outcome = x'00', outcome_codec = 0 WHERE step = 4 AND kind = 'tool'",
    )
    .await;
    let replay = world.run(&["replay", "t"]).await.code(1);
    assert_eq!(replay.stdout, "");
    replay
        .says("step 4 of the thread")
        .says("its recorded call files.read (task 0, call 2) does not fit its checksum");
}

#[tokio::test]
async fn answers_forks_and_shortened_threads_replay_up_to_their_stored_steps() {
    let mut world = World::new(noting()).await;
    world
        .write("mcp-servers.toml", &format!("{SERVERS}default_tools_approval_mode = \"prompt\"\n"));
    world.run(&["run", "Note it", "--thread", "t", "-q"]).await.code(3);
    world.run(&["resume", "t", "--approve", "-q"]).await.code(0);
    world.run(&["threads", "fork", "t", "--at", "5", "--thread", "f"]).await.code(0);
    world.run(&["resume", "f", "-q"]).await.code(0);
    without_anything(&mut world);
    for thread in ["t", "f"] {
        let replay = world.run(&["replay", thread, "--json"]).await.code(0).json();
        assert_eq!((&replay["replayed"], &replay["taken"]), (&5.into(), &1.into()), "{replay}");
    }
    // A fork that outlives its source keeps the shared steps, but not what they called.
    world.run(&["threads", "delete", "t", "--yes"]).await.code(0);
    let replay = world.run(&["replay", "f"]).await.code(0);
    assert!(
        replay.stdout.contains(
            "replay begins at step 6, because the earlier steps belong to another thread"
        ),
        "{replay:?}"
    );
    assert!(replay.stdout.contains("1 step replayed"), "{replay:?}");
    world.run(&["threads", "prune", "--keep-steps", "2", "f"]).await.code(0);
    let replay = world.run(&["replay", "f"]).await.code(0);
    assert!(replay.stdout.contains("the earlier steps were pruned"), "{replay:?}");
}

#[tokio::test]
async fn two_threads_that_did_the_same_do_not_differ() {
    let is_done = Rule::new(select(&["qa"])).role(Role::Supervisor).contains("a.txt says 42");
    let mut world = World::new(first(is_done, reading())).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    world.run(&["threads", "fork", "t", "--at", "3", "--thread", "f"]).await.code(0);
    world.run(&["resume", "f", "-q"]).await.code(0);
    without_anything(&mut world);
    let diff = world.run(&["diff", "t", "f"]).await.code(0);
    assert!(
        diff.stdout.contains("3 shared steps\nsteps 4 to 6: the same\nno differences"),
        "{diff:?}"
    );
    world.run(&["diff", "t", "t", "--run", "1"]).await.code(0);
    world.run(&["diff", "t", "nobody"]).await.code(2).says("unknown thread: nobody");
    world.run(&["diff", "t", "f", "--run", "7"]).await.code(2).says("no run 7");
    // 1 would mean that they differ.
    world.write("no.db", &"not a database".repeat(100));
    for database in ["sqlite:no.db", "postgres://127.0.0.1:1/p"] {
        world.run(&["--database", database, "diff", "t", "f"]).await.code(2);
    }
}

/// X3
#[tokio::test]
async fn two_runs_are_compared_step_by_step() {
    let script = reading();
    let script = first(
        Rule::new(Reply::text("a.txt says 43"))
            .role(Role::Agent)
            .contains("otherwise")
            .after_tool_results(1),
        script,
    );
    let script = first(
        Rule::new(select(&["mcp_agent_files"])).role(Role::Supervisor).contains("otherwise").nth(1),
        script,
    );
    let world = World::new(script).await;
    world.run(&["run", "What is it?", "--thread", "one", "-q"]).await.code(0);
    world.run(&["run", "What is it otherwise?", "--thread", "other", "-q"]).await.code(0);
    let diff = world.run(&["diff", "one", "other"]).await.code(1);
    for line in [
        "step 1 input",
        "__input__ wrote input_request: \"What is it?\" → \"What is it otherwise?\"",
        "request to supervisor messages[",
        "result of agent content: \"a.txt says 42\" → \"a.txt says 43\"",
        "mcp_agent_files wrote messages[0].content, results[0].task, results[0].output, spent.input_tokens: as above",
        "A one: 6 steps, 6 model calls, 1 tool calls",
        "B other: 6 steps, 6 model calls, 1 tool calls",
    ] {
        assert!(diff.stdout.contains(line), "missing: {line}\n{}", diff.stdout);
    }
    let json = world.run(&["diff", "one", "other", "--json"]).await.code(1).json();
    assert_eq!((&json["same"], &json["shared"]), (&false.into(), &0.into()));
    assert_eq!(json["steps"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn steps_of_only_one_of_the_threads_are_named() {
    let script = first(
        Rule::new(clarify("Which?")).contains("unclear").role(Role::Supervisor).nth(1),
        answering(),
    );
    let world = World::new(first(approved(), script)).await;
    world.run(&["run", "clear", "--thread", "a", "-q"]).await.code(0);
    world.run(&["run", "unclear", "--thread", "b", "-q"]).await.code(3);
    let diff = world.run(&["diff", "a", "b"]).await.code(1);
    assert!(diff.stdout.contains("only in A"), "{}", diff.stdout);
}
