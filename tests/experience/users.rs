//! Users are remembered as they wish.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};

use crate::{script, world};

fn operation(op: &str, kind: &str, key: &str, value: Value) -> Value {
    json!({ "operations": [{ "op": op, "kind": kind, "key": key, "value": value }] })
}

/// An extractor that hears of a company and of a wish to be forgotten.
fn listening() -> Script {
    let extractor = |reply: Value| Rule::new(Reply::json(reply)).role(Role::Extractor);
    let company = operation("set", "fact", "company", json!("Acme Rockets"));
    let forget = operation("forget", "fact", "company", Value::Null);
    script("APPROVED")
        .rule(extractor(company).last_contains("I work at Acme Rockets"))
        .rule(extractor(forget).last_contains("Forget where I work"))
        .rule(extractor(json!({ "operations": [] })))
        .rule(Rule::new(Reply::text("42")).role(Role::Agent))
}

/// S3.03
#[tokio::test(flavor = "multi_thread")]
async fn facts_that_a_user_states_are_in_all_prompts_of_only_their_next_thread() {
    let world = world(listening()).await;
    world
        .run(&["run", "I work at Acme Rockets. What is 6 x 7?", "--user", "ada", "-q"])
        .await
        .code(0);
    assert_eq!(world.asked(Role::Extractor), 1);
    let known = world.run(&["memory", "--user", "ada", "--json"]).await.code(0).json();
    assert_eq!((&known[0]["key"], &known[0]["value"]), (&json!("company"), &json!("Acme Rockets")));

    let before = world.model.requests().len();
    world.run(&["run", "What is 6 x 7?", "--user", "ada", "-q"]).await.code(0);
    let requests = world.model.requests();
    for role in [Role::Supervisor, Role::Agent, Role::Qa] {
        let mut of_role = requests[before..].iter().filter(|one| one.role == role.as_str());
        assert!(of_role.all(|one| one.contains("Acme Rockets")), "{}", role.as_str());
    }
    let extractor = requests[before..].iter().find(|one| one.role == "extractor").unwrap();
    assert!(!extractor.contains("Acme Rockets"), "what was recalled is not extracted again");

    let before = world.model.requests().len();
    world.run(&["run", "What is 6 x 7?", "--user", "bob", "-q"]).await.code(0);
    world.run(&["run", "What is 6 x 7?", "-q"]).await.code(0);
    let requests = world.model.requests();
    assert!(requests[before..].iter().all(|one| !one.contains("Acme Rockets")));
}

/// S3.03
#[tokio::test(flavor = "multi_thread")]
async fn a_new_value_supersedes_the_old_one_with_dates_and_deletion_is_final() {
    let world = world(listening()).await;
    for company in ["Globex Corporation", "Initech Limited"] {
        world.run(&["memory", "set", "company", company, "--user", "ada"]).await.code(0);
    }
    world.run(&["memory", "set", "tone", "brief", "--user", "ada"]).await.code(0);
    let all =
        world.run(&["memory", "list", "--all", "--json", "--user", "ada"]).await.code(0).json();
    assert_eq!(all.as_array().unwrap().len(), 3);
    assert!(all[0]["until"].is_string() && all[1].get("until").is_none(), "{all:#}");
    let tone = all.as_array().unwrap().iter().find(|one| one["key"] == "tone").unwrap();
    assert_eq!(tone["kind"], "preference");
    // It was in the prompts of a thread, and is in no file all the same.
    world.run(&["run", "What is 6 x 7?", "--user", "ada", "-q"]).await.code(0);
    assert!(world.model.requests().iter().any(|one| one.contains("Initech Limited")));
    world.run(&["memory", "forget", "company", "--user", "ada"]).await.code(0);
    let left = world.run(&["memory", "--user", "ada", "--json"]).await.code(0).json();
    assert_eq!(left.as_array().unwrap().len(), 1);
    let mut directories = vec![world.path("data")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap_or_default();
            for word in ["Globex Corporation", "Initech Limited", "initech"] {
                let is_there = bytes.windows(word.len()).any(|window| window == word.as_bytes());
                assert!(!is_there, "{word} in {}", path.display());
            }
        }
    }
    world
        .run(&["memory", "forget", "company", "--user", "ada"])
        .await
        .code(1)
        .says("no memory has that key");
    world.run(&["memory"]).await.code(2).says("--user NAME");
}

/// S3.03: the extractor hangs, and the run is done all the same; the planner was not behind it.
#[tokio::test(flavor = "multi_thread")]
async fn no_run_waits_for_the_extractor() {
    let slow = Rule::new(Reply::json(json!({ "operations": [] })).delay_ms(1_500));
    let slow = Script::new().rule(slow.role(Role::Extractor));
    let script = script("APPROVED").rules.into_iter().fold(slow, Script::rule);
    let world = world(script.rule(Rule::new(Reply::text("42")).role(Role::Agent))).await;
    world.run(&["run", "What is 6 x 7?", "--user", "ada", "-q"]).await.code(0);
    let requests = world.model.requests();
    let place = |role: &str| requests.iter().position(|one| one.role == role).unwrap();
    assert!(place("supervisor") <= 1 && place("extractor") <= 1, "they began together");
}
