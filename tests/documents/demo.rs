//! `perihelion demo --documents`, as people start it; killed and resumed.

use serde_json::{Value, json};

use super::Home;

/// What the answer must be, page numbers included: those of the typeset documents.
const DEMO: [&str; 4] = ["demo", "--documents", "--json", "--quiet"];

/// Returns what the results are, without what differs from run to run.
fn results(report: &Value) -> Vec<Value> {
    let results = report["results"].as_array().unwrap().iter();
    let reported =
        |one: &Value| json!([one["agent"], one["output"], one["sources"], one["tabular"]]);
    results.map(reported).collect()
}

/// S3.05, S3.06, X1: documents with pages are added as `documents add` does, two agents cite their pages, and an analyst counts on what
/// they found.
#[tokio::test(flavor = "multi_thread")]
async fn the_demo_of_documents_answers_with_pages_and_a_count_supported_by_them() {
    let home = Home::new(None);
    let report = home.json(&DEMO).await;
    assert_eq!(report["status"], "done", "{report:#}");
    let [releases, theory, counted] = report["results"].as_array().unwrap().as_slice() else {
        panic!("{report:#}")
    };
    assert_eq!(releases["agent"], "mcp_agent_releases");
    assert_eq!(theory["agent"], "mcp_agent_theory");
    assert_eq!(counted["agent"], "mcp_agent_timezones");
    assert_eq!(counted["tabular"]["rows"][0][0], "Morocco", "{counted:#}");

    let answer = report["answer"].as_str().unwrap();
    for (number, result) in [(1, releases), (2, theory)] {
        let reference = result["sources"][0]["reference"].as_str().unwrap();
        let mut parts = reference.split(", ");
        let title = parts.next().unwrap();
        let page = parts.next().unwrap();
        assert!(page.starts_with("page "), "{reference}");
        assert!(
            answer.contains(&format!("({title}, {page}) [{number}].")),
            "{answer}\n{reference}"
        );
    }
    let changes = &counted["tabular"]["rows"][0][1];
    assert!(answer.contains(&format!("Morocco changed {changes} times")), "{answer}");

    // What was added is described, embedded, and on a thread of its own each.
    let kept = home.path().join(".local/share/perihelion/demo/documents.db");
    let of_demo = format!("sqlite:{}", kept.display());
    let listed = home
        .json(&["--database", &of_demo, "documents", "list", "--tenant", "demo", "--json"])
        .await;
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 3, "{listed:#?}");
    for document in listed {
        assert_eq!(
            (&document["format"], &document["description"]["type"]),
            (&json!("pdf"), &json!("text"))
        );
    }
    let threads = home.json(&["--database", &of_demo, "threads", "list", "--json"]).await;
    assert_eq!(threads.as_array().unwrap().len(), 3, "{threads:#}");
}

/// X1, X7: killed between the analyst's calls and their commit, the demo ends with the same answer; no call is made and no document embedded
/// a second time.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_demo_of_documents_ends_with_the_same_answer_and_pays_for_no_call_twice() {
    let home = Home::new(None);
    let whole = home.json(&DEMO).await;
    let spans = async |thread: &str| -> Vec<String> {
        let trace = home.json(&["trace", thread, "--json"]).await;
        let spans = trace["spans"].as_array().unwrap().iter();
        let mut reported: Vec<String> = spans
            .filter(|span| span["kind"] != "workflow")
            .map(|span| format!("{} {} {}", span["kind"], span["name"], span["usage"]))
            .collect();
        reported.sort();
        reported
    };
    let unhurt = spans(whole["thread_id"].as_str().unwrap()).await;
    assert!(unhurt.len() > 10, "{unhurt:#?}");

    let killed = home.run(&["demo", "--documents", "--crash"]).await;
    let output = String::from_utf8_lossy(&killed.stderr);
    assert_eq!(killed.status.code(), None, "{output}");
    assert!(!output.contains("added "), "unchanged documents cost nothing: {output}");
    let threads = home.json(&["threads", "list", "--status", "busy", "--json"]).await;
    let thread = threads[0]["thread_id"].as_str().unwrap();
    let half = spans(thread).await;
    assert!(half.len() > 5 && half.len() < unhurt.len(), "{half:#?}");

    let resumed = home.json(&["resume", thread, "--json", "--quiet"]).await;
    assert_eq!(resumed["answer"], whole["answer"]);
    assert_eq!(results(&resumed), results(&whole));
    assert_eq!(resumed["usage"], whole["usage"], "each call is paid for once");
    assert_eq!(spans(thread).await, unhurt);
}
