//! What skills save: a family of tasks, worked on with and without them (`make bench-skills`).

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::json;

use crate::{script, world};

/// Files of the family; each has a task of its own.
const FILES: [&str; 8] = [
    "north.txt",
    "south.txt",
    "east.txt",
    "west.txt",
    "spring.txt",
    "summer.txt",
    "autumn.txt",
    "winter.txt",
];

/// What a run of the whole family took.
struct Took {
    model_calls: usize,
    tool_calls: usize,
    tokens: u64,
}

fn question(file: &str) -> String {
    format!("Which total does {file} state?")
}

/// An agent that searches its way through the folder, unless a skill says which call answers.
fn explorer() -> Script {
    let agent = |reply: Reply| Rule::new(reply).role(Role::Agent);
    let read = |file: &str| Reply::call("read", json!({ "path": file }));
    let mut explorer = script("APPROVED");
    for file in FILES {
        let asked = question(file);
        explorer = explorer
            .rule(agent(read(file)).contains(&asked).contains("<skill>").after_tool_results(0))
            .rule(agent(Reply::text("42")).contains(&asked).contains("<skill>"))
            .rule(agent(Reply::call("list", json!({}))).contains(&asked).after_tool_results(0))
            .rule(agent(read("a.txt")).contains(&asked).after_tool_results(1))
            .rule(agent(read(file)).contains(&asked).after_tool_results(2))
            .rule(agent(Reply::text("42")).contains(&asked));
    }
    explorer
}

async fn family(experience: &str) -> Took {
    let mut world = world(explorer()).await;
    world.set("PERIHELION_SWARM_EXPERIENCE", experience);
    for file in FILES {
        world.write(&format!("documents/{file}"), "The total is 42.\n");
    }
    let mut tool_calls = 0;
    let mut tokens = 0;
    for file in FILES {
        let report = world.run(&["run", &question(file), "--json", "-q"]).await.code(0).json();
        let results = report["results"].as_array().unwrap();
        tool_calls +=
            results.iter().map(|one| one["tools"].as_array().unwrap().len()).sum::<usize>();
        let usage = &report["usage"];
        tokens +=
            usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
    }
    Took { model_calls: world.asked(Role::Agent), tool_calls, tokens }
}

/// S1.11
#[tokio::test(flavor = "multi_thread")]
async fn a_family_of_tasks_needs_fewer_model_and_tool_calls_with_skills_than_without() {
    let without = family("false").await;
    let with = family("true").await;
    println!("| {} tasks | agent's model calls | tool calls | tokens of the runs |", FILES.len());
    println!("|---|---|---|---|");
    for (name, took) in [("without skills", &without), ("with skills", &with)] {
        println!("| {name} | {} | {} | {} |", took.model_calls, took.tool_calls, took.tokens);
    }
    // The first of the family is worked out; the others are done as it was.
    let rest = FILES.len() - 1;
    assert_eq!((without.model_calls, without.tool_calls), (4 * FILES.len(), 3 * FILES.len()));
    assert_eq!((with.model_calls, with.tool_calls), (4 + 2 * rest, 3 + rest));
    assert!(with.tokens < without.tokens, "{} and {}", with.tokens, without.tokens);
}
