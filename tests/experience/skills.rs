//! Skills: learned from approved work, shown for work of the same family, and what they save.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};

use crate::{AGENT, script, world};

/// An agent that reads the file at once where a skill says how, and looks around first where none does.
fn explorer(status: &str) -> Script {
    let agent = |reply: Reply| Rule::new(reply).role(Role::Agent);
    let read = |file: &str| Reply::call("read", json!({ "path": file }));
    let mut explorer = script(status);
    for file in ["a.txt", "b.txt"] {
        let asked = format!("What does {file} say?");
        explorer = explorer
            .rule(agent(read(file)).contains(&asked).contains("<skill>").after_tool_results(0))
            .rule(agent(Reply::text("42")).contains("<skill>").after_tool_results(1))
            .rule(agent(Reply::call("list", json!({}))).contains(&asked).after_tool_results(0))
            .rule(agent(read(file)).contains(&asked).after_tool_results(1))
    }
    explorer.rule(agent(Reply::text("42")).after_tool_results(2))
}

fn calls(report: &Value) -> usize {
    report["results"][0]["tools"].as_array().map_or(0, Vec::len)
}

/// S1.06, S1.11
#[tokio::test(flavor = "multi_thread")]
async fn an_approved_task_becomes_a_skill_that_saves_calls_for_the_next_of_its_family() {
    let world = world(explorer("APPROVED")).await;
    world.run(&["run", "What does a.txt say?", "--json", "-q"]).await.code(0);
    let before = world.asked(Role::Agent);
    let listed = world.run(&["skills", "list", "--json"]).await.code(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed:#}");
    assert_eq!(listed[0]["task"], "What does {path} say?");
    assert_eq!(listed[0]["agent"], AGENT);
    assert_eq!(listed[0]["steps"][1], json!({ "tool": "read", "arguments": { "path": "{path}" } }));

    world.run(&["run", "What does b.txt say?", "--json", "-q"]).await.code(0);
    let after = world.asked(Role::Agent) - before;
    assert_eq!((before, after), (3, 2), "one model call and one tool call fewer");
    let requests = world.model.requests();
    let shown = requests.iter().filter(|request| request.role == "agent").nth(before).unwrap();
    assert!(shown.contains("What does {path} say?") && shown.contains("read("), "{shown:?}");

    let id = listed[0]["id"].as_str().unwrap();
    let found = world.run(&["skills", "search", "say", "--json"]).await.code(0).json();
    assert_eq!(found[0]["id"], id);
    let exported = world.run(&["skills", "export"]).await.code(0).stdout;
    world.run(&["skills", "forget", &id[..8]]).await.code(0);
    assert_eq!(world.run(&["skills", "--json"]).await.code(0).json(), json!([]));
    world.write("skills.jsonl", &exported);
    world.run(&["skills", "import", "skills.jsonl"]).await.code(0).says("imported 1 skill");
    world.run(&["skills", "show", id]).await.code(0);
    world.run(&["skills", "show", "nothing"]).await.code(1).says("unknown skill: nothing");
}

/// S1.11
#[tokio::test(flavor = "multi_thread")]
async fn rejected_or_tainted_work_teaches_no_skill() {
    let rejected = world(explorer("REJECTED")).await;
    rejected.run(&["run", "What does a.txt say?", "-q"]).await;
    assert_eq!(rejected.run(&["skills", "--json"]).await.code(0).json(), json!([]));

    let tainted = world(explorer("APPROVED")).await;
    tainted.write(
        "mcp-servers.toml",
        &crate::SERVERS.replace("open_world = false", "open_world = true"),
    );
    tainted.run(&["run", "What does a.txt say?", "-q"]).await.code(0);
    assert_eq!(tainted.run(&["skills", "--json"]).await.code(0).json(), json!([]));
}

/// X3: what an agent was shown is noted, and a replay needs no skill.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_a_skill_is_replayed_after_the_skill_is_deleted() {
    let world = world(explorer("APPROVED")).await;
    world.run(&["run", "What does a.txt say?", "-q"]).await.code(0);
    world.run(&["run", "What does b.txt say?", "-q", "--thread", "second"]).await.code(0);
    let listed = world.run(&["skills", "--json"]).await.code(0).json();
    for skill in listed.as_array().unwrap() {
        world.run(&["skills", "forget", skill["id"].as_str().unwrap()]).await.code(0);
    }
    world.run(&["replay", "second"]).await.code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_use_vector_search_if_an_embedding_model_is_set() {
    let mut world = world(explorer("APPROVED")).await;
    world.set("PERIHELION_EMBEDDINGS_MODEL", "embedder");
    world.run(&["run", "What does a.txt say?", "-q"]).await.code(0);
    let report = world.run(&["run", "What does b.txt say?", "--json", "-q"]).await.code(0).json();
    assert_eq!(report["status"], "done");
    assert_eq!(world.asked(Role::Agent), 5);
    assert!(calls(&report) <= 1);
}
