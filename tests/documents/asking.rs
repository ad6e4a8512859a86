//! What people ask of documents beside what one of them says: what is not there, which there are, and how two differ.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Home;
use super::agent::servers;
use super::endpoint::{Endpoint, willing};

/// Plans these tasks once, and answers each as `written` says.
fn planned(
    tasks: Value,
    written: impl Fn(&str) -> Value + Send + Sync + 'static,
) -> impl Fn(&str, &str, &Value) -> Value + Send + Sync + 'static {
    move |role, stage, body| {
        let text = body["messages"].to_string();
        match (role, stage) {
            ("supervisor", _) => {
                let done = text.contains("<result number");
                let agents = if done { json!(["qa"]) } else { json!(["papers"]) };
                let tasks = if done { json!([]) } else { tasks.clone() };
                json!({ "thought_process": "t", "plan": ["p"], "selected_agents": agents, "tasks": tasks, "clarification": null, "confidence": null })
            }
            ("agent", "answer") => written(&text),
            _ => willing(role, stage, body),
        }
    }
}

fn task(id: &str, words: &str, entities: Value, depends_on: Value) -> Value {
    json!({ "id": id, "agent": "papers", "task": words, "depends_on": depends_on, "entities": entities })
}

async fn run(home: &Home, endpoint: &Endpoint) -> (Value, Vec<String>) {
    home.json(&["documents", "add", ".", "--json"]).await;
    std::fs::write(home.path().join("mcp-servers.toml"), servers(home, &["--words-only"])).unwrap();
    let report = home.json(&["run", "What do they say?", "--json", "--quiet"]).await;
    assert_eq!(report["status"], "done", "{report:#}");
    let asked = endpoint.asked.lock().unwrap();
    let answers = asked.chats.iter().filter(|(_, stage, _)| stage == "answer");
    (report, answers.map(|(_, _, body)| body["messages"].to_string()).collect())
}

/// S3.06: what the documents do not say is said, with what there is, and no model is asked to make something up.
#[tokio::test(flavor = "multi_thread")]
async fn a_fact_missing_from_the_documents_is_reported_as_missing() {
    let tasks = json!([task("t1", "zebra xylophone", json!([]), json!([]))]);
    let script = planned(tasks, |_| json!("Zebras are striped."));
    let endpoint = Endpoint::start(Arc::new(|_| true), Arc::new(script)).await;
    let home = Home::new(Some(endpoint.url.clone()));
    let (report, answers) = run(&home, &endpoint).await;
    let output = report["results"][0]["output"].as_str().unwrap();
    assert!(output.starts_with("Nothing that was found says anything about this."), "{output}");
    assert!(output.contains("- Lease") && output.contains("- Garden notes"), "{output}");
    assert_eq!(report["results"][0]["sources"], json!([]));
    assert!(answers.is_empty(), "{answers:?}");
}

/// S3.06: which documents there are is answered from the list, not from passages.
#[tokio::test(flavor = "multi_thread")]
async fn which_documents_there_are_is_answered_from_the_list() {
    let tasks = json!([task("t1", "which documents on the rent are there", json!([]), json!([]))]);
    let script = planned(tasks, |text| {
        if text.contains("<documents>") {
            json!("There are two: Lease, Garden notes.")
        } else {
            json!("LIST")
        }
    });
    let endpoint = Endpoint::start(Arc::new(|_| true), Arc::new(script)).await;
    let home = Home::new(Some(endpoint.url.clone()));
    let (report, answers) = run(&home, &endpoint).await;
    assert_eq!(report["results"][0]["output"], "There are two: Lease, Garden notes.");
    let [first, second] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(first.contains("LIST") && !first.contains("<documents>"), "{first}");
    // By their titles, and what a model said they are.
    assert!(second.contains("Garden notes: It says something."), "{second}");
}

/// S3.06: of documents that are compared each one has its share of the passages, however much more the other one says.
#[tokio::test(flavor = "multi_thread")]
async fn both_sides_of_a_comparison_are_among_the_passages() {
    let much: String = (0..24)
        .map(|n| {
            format!(
                "## Part {n}\n\n{} Item {n} {}\n\n",
                "crowns ".repeat(20),
                "and more words of it ".repeat(180)
            )
        })
        .collect();
    let little = format!(
        "# Budget\n\n{} A sum of crowns is named once.\n",
        "Words of another kind. ".repeat(60)
    );
    let with = async |entities: Value| {
        let tasks = json!([task("t1", "crowns", entities, json!([]))]);
        let script = planned(tasks, |_| json!("They differ [1]."));
        let endpoint = Endpoint::start(Arc::new(|_| true), Arc::new(script)).await;
        let home = Home::new(Some(endpoint.url.clone()));
        std::fs::write(home.path().join("much.md"), format!("# Accounts\n\n{much}")).unwrap();
        std::fs::write(home.path().join("little.md"), &little).unwrap();
        let (report, answers) = run(&home, &endpoint).await;
        let [answer] = answers.as_slice() else { panic!("{report:#}") };
        answer.clone()
    };
    let one = with(json!([])).await;
    assert!(one.contains("Accounts") && !one.contains("A sum of crowns"), "{one}");
    // Each passage is read whole: eight of them, no two the same.
    assert_eq!(one.matches("<passage number=").count(), 8, "{one}");
    let named = json!([{ "name": "document", "value": "accounts" }, { "name": "document", "value": "little.md" }]);
    let both = with(named).await;
    assert!(both.contains("Accounts") && both.contains("A sum of crowns"), "{both}");
}

/// S2.03, S3.06: what an upstream agent found refines the search.
#[tokio::test(flavor = "multi_thread")]
async fn results_of_an_upstream_agent_refine_the_search() {
    let tasks = json!([
        task("t1", "rent of the lease", json!([]), json!([])),
        task("t2", "zebra", json!([]), json!(["t1"])),
    ]);
    let script = planned(tasks, |text| {
        if text.contains("Tomatoes want six hours") {
            json!("Six hours [1].")
        } else {
            json!("It is paid in tomatoes [1].")
        }
    });
    let endpoint = Endpoint::start(Arc::new(|_| true), Arc::new(script)).await;
    let home = Home::new(Some(endpoint.url.clone()));
    let (report, _) = run(&home, &endpoint).await;
    let second = &report["results"][1];
    assert_eq!(second["output"], "Six hours [1].", "{report:#}");
    let searched = second["tools"].as_array().unwrap().iter();
    let queries: Vec<&str> =
        searched.filter_map(|tool| tool["arguments"]["query"].as_str()).collect();
    assert_eq!(queries, ["zebra", "zebra It is paid in tomatoes [1]."]);
}
