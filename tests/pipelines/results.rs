//! What a pipeline hands back, and how it is judged.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use serde_json::{Value, json};

use crate::library::{Kept, Library, approved, quotation, script, words};

/// S1.07: the feedback reaches the first stage, and what was done before is not forgotten.
#[tokio::test]
async fn a_rejected_finding_runs_the_pipeline_again_with_the_feedback() {
    let verdict = json!({ "status": "REJECTED", "refined_output": null, "feedback": "Look at b." });
    let rejected = Rule::new(Reply::json(verdict)).role(Role::Reflector).times(1);
    let script = script().rule(words()).rule(quotation()).rule(rejected).rule(approved());
    let library = Library::open(Kept::Sqlite, script, &[("a.txt", "The answer is 42.\n")]).await;
    let report = library.run(Some("What is the answer?")).await;
    let result = &report["results"][0];
    assert_eq!((&result["attempts"], &result["status"]), (&json!(2), &json!("success")));
    let [first, second] = library.stage("words").try_into().unwrap();
    assert!(!first.contains("Look at b.") && second.contains("Look at b."));
    assert_eq!(second.headers["x-perihelion-role"], "agent");
    assert_eq!(second.thread, library.thread().to_string(), "the top thread is named");
}

/// S2.09, S2.11, S3.02
#[tokio::test]
async fn a_result_has_every_key_of_its_shape_and_a_failure_its_type() {
    let script = script().rule(words()).rule(quotation()).rule(approved());
    let library = Library::open(Kept::Sqlite, script, &[("a.txt", "The answer is 42.\n")]).await;
    let report = library.run(Some("What is the answer?")).await;
    let result = report["results"][0].as_object().unwrap();
    for key in [
        "task",
        "agent",
        "status",
        "output",
        "tabular",
        "chart",
        "confidence",
        "sources",
        "error",
        "usage",
        "latency_ms",
        "attempts",
    ] {
        assert!(result.contains_key(key), "{key}: {result:#?}");
    }
    assert_eq!(result["error"], Value::Null);
    assert_eq!(result["sources"][0]["quote"], "The answer is 42.");
    assert_eq!(report["citations"][0]["arguments"]["reference"], "a.txt");

    let library = Library::open(Kept::Sqlite, super::library::script().rule(words()), &[]).await;
    let report = library.run(Some("What is the answer?")).await;
    let error = &report["results"][0]["error"];
    assert_eq!(error["type"], "PlanningDeclined", "{report:#}");
    assert_eq!(error["message"], "no file holds these words");
}
