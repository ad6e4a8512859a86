//! Questions to a person: how they are put, answered, and refused a second time.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};

use super::world::{SERVERS, World, clarify, noting, select};

fn clarifying() -> Script {
    Script::new()
        .rule(Rule::new(clarify("Which year?")).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor).contains("1945"))
        .rule(Rule::new(Reply::text("In 1945, yes.")).role(Role::Qa))
}

/// The notes server, whose calls a person approves.
fn gated() -> String {
    format!("{SERVERS}default_tools_approval_mode = \"prompt\"\n")
}

/// Takes the command that answers out of what was said, and runs it.
async fn type_the_words(world: &World, words: &str, with: &str) -> super::world::Ended {
    let line = words.lines().find(|line| line.contains("resume") && line.contains(with)).unwrap();
    let line = line.trim().strip_prefix("perihelion ").unwrap().replace('\'', "");
    let args: Vec<&str> = line.split(' ').collect();
    world.run(&args).await
}

/// S4.02
#[tokio::test]
async fn a_clarification_ends_with_code_3_and_the_command_that_answers_it() {
    let world = World::new(clarifying()).await;
    let run = world.run(&["run", "Did they?", "--thread", "q"]).await.code(3);
    assert_eq!(run.stdout, "");
    let run = run.says("Which year?").says("clarification, supervisor").says("--message 'TEXT'");

    // Resuming without an answer asks again, and loses nothing.
    world.run(&["resume", "q", "-q"]).await.code(3).says("Which year?");
    let answer = world.run(&["resume", "q", "--message", "1945", "-q"]).await.code(0);
    assert_eq!(answer.stdout, "In 1945, yes.\n");
    assert_eq!(world.asked(Role::Supervisor), 2, "{run:?}");
}

/// X7: what was asked and answered is in the traces, where content is.
#[tokio::test]
async fn a_trace_ends_with_the_question_and_the_next_begins_with_the_answer() {
    let mut world = World::new(clarifying()).await;
    world.run(&["run", "Did they?", "--thread", "q", "-q"]).await.code(3);
    world.run(&["resume", "q", "--message", "1945", "-q"]).await.code(0);
    let root = async |world: &World, run: &str, name: &str| -> Option<String> {
        let sent = world.run(&["trace", "q", "--run", run, "--otlp"]).await.code(0).json();
        let span = sent["resourceSpans"][0]["scopeSpans"][0]["spans"][0].clone();
        let key = format!("langfuse.observation.{name}");
        let mut all = span["attributes"].as_array().unwrap().clone().into_iter();
        let found = all.find(|one| one["key"] == key.as_str())?;
        Some(found["value"]["stringValue"].as_str().unwrap().to_owned())
    };
    assert_eq!(root(&world, "1", "output").await, None, "content");
    world.set("PERIHELION_TRACES_CONTENT", "true");
    assert_eq!(root(&world, "1", "input").await.as_deref(), Some("Did they?"));
    assert_eq!(root(&world, "1", "output").await.as_deref(), Some("Which year?"));
    assert_eq!(root(&world, "2", "input").await.as_deref(), Some("1945"));
    assert_eq!(root(&world, "2", "output").await.as_deref(), Some("In 1945, yes."));
}

#[tokio::test]
async fn with_json_the_questions_are_part_of_the_object() {
    let world = World::new(clarifying()).await;
    let run = world.run(&["run", "Did they?", "--json", "-q"]).await.code(3);
    assert_eq!(run.stderr, "");
    let report = run.json();
    assert_eq!(report["status"], "interrupted");
    assert!(report["answer"].is_null());
    let open = &report["interrupts"][0];
    assert_eq!(open["kind"], "clarification");
    assert_eq!(open["agent"], "supervisor");
    assert_eq!(open["payload"]["question"], "Which year?");
    let thread = report["thread_id"].as_str().unwrap();
    let id = open["id"].as_str().unwrap();
    let args = ["resume", thread, "--interrupt", id, "--answer", "1945", "--json", "-q"];
    let done = world.run(&args).await.code(0).json();
    assert_eq!(done["answer"], "In 1945, yes.");

    // The question is closed now: a second answer is refused by name.
    let again = world.run(&["resume", thread, "--interrupt", id, "--answer", "1946"]).await.code(2);
    assert_eq!(again.stdout, "");
    again.says("already answered");
}

/// S3.09
#[tokio::test]
async fn a_call_that_needs_approval_waits_and_happens_once_it_is_given() {
    let world = World::new(noting()).await;
    world.write("mcp-servers.toml", &gated());
    let run = world.run(&["run", "Note it", "--thread", "n"]).await.code(3);
    let run = run.says("approval, mcp_agent_notes").says("notes.append_note").says("remember");
    assert_eq!(world.read("notes.jsonl"), "");

    let show = world.run(&["threads", "show", "n"]).await.code(0);
    assert!(show.stdout.contains("--approve") && show.stdout.contains("remember"), "{show:?}");
    let shown = world.run(&["threads", "show", "n", "--json"]).await.code(0).json();
    assert_eq!(shown["status"], "interrupted");
    assert_eq!(shown["interrupts"][0]["agent"], "mcp_agent_notes");

    let done = type_the_words(&world, &run.stderr, "--approve").await.code(0);
    assert_eq!(done.stdout, "It is noted.\n");
    assert_eq!(world.read("notes.jsonl").lines().count(), 1);
}

/// S3.09
#[tokio::test]
async fn a_denied_call_never_happens_and_the_agent_receives_the_reason() {
    let world = World::new(noting()).await;
    world.write("mcp-servers.toml", &gated());
    world.run(&["run", "Note it", "--thread", "n", "-q"]).await.code(3);
    world
        .run(&["resume", "n", "--message", "hello"])
        .await
        .code(2)
        .says("--message is an answer to clarification");
    world
        .run(&["resume", "n", "--outcome", "retry"])
        .await
        .code(2)
        .says("--outcome is an answer to outcome_unknown");
    world.run(&["resume", "n", "--answer", "perhaps"]).await.code(2).says("approve or deny");
    world.run(&["resume", "n", "--deny", "--reason", "not on a Friday", "-q"]).await.code(0);
    assert_eq!(world.read("notes.jsonl"), "");
    let requests = world.model.requests();
    assert!(requests.iter().any(|one| one.role == "agent" && one.contains("not on a Friday")));
}

#[tokio::test]
async fn of_several_questions_one_must_be_named() {
    let note = || Reply::call("append_note", serde_json::json!({ "text": "remember" }));
    let script = Script::new()
        .rule(
            Rule::new(select(&["mcp_agent_notes", "mcp_agent_more"])).role(Role::Supervisor).nth(1),
        )
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(Rule::new(note()).role(Role::Agent).after_tool_results(0))
        .rule(Rule::new(Reply::text("noted")).role(Role::Agent))
        .rule(super::world::approved())
        .rule(Rule::new(Reply::text("Both are noted.")).role(Role::Qa));
    let world = World::new(script).await;
    let more = gated().replace("mcp_servers.files", "mcp_servers.other");
    let more = format!(
        "{more}\n[mcp_servers.more]\ncommand = \"perihelion\"\n\
         args = [\"mcp\", \"notes\", \"--file\", \"more.jsonl\"]\ndefault_tools_approval_mode = \"prompt\"\n"
    );
    world.write("mcp-servers.toml", &more);
    let run = world.run(&["run", "Note it twice", "--thread", "n", "--json"]).await.code(3).json();
    let open = run["interrupts"].as_array().unwrap();
    assert_eq!(open.len(), 2);
    world.run(&["resume", "n", "--approve"]).await.code(2).says("select one with --interrupt");
    let first = open[0]["id"].as_str().unwrap();
    let second = open[1]["id"].as_str().unwrap();
    world.run(&["resume", "n", "--interrupt", first, "--approve", "-q"]).await.code(3);
    world.run(&["resume", "n", "--interrupt", second, "--approve", "-q"]).await.code(0);
    assert_eq!(world.read("notes.jsonl").lines().count(), 1);
    assert_eq!(world.read("more.jsonl").lines().count(), 1);
}
