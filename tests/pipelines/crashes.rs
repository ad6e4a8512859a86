//! A pipeline that is killed continues in the stage it was in.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use serde_json::json;

use crate::library::{AGENT, BOTH, Library, approved, quotation, script, words};

/// S1.06, X2: the process is killed while the last stage waits for its model; the stages before it are committed.
#[tokio::test]
async fn a_pipeline_that_is_killed_between_two_stages_continues_without_repeating_the_first() {
    for kept in BOTH {
        let hangs = Rule::new(Reply::hang()).role(Role::Agent).stage("answer").times(1);
        let script = script().rule(words()).rule(hangs).rule(quotation()).rule(approved());
        let library = Library::open(kept, script, &[("a.txt", "The answer is 42.\n")]).await;
        let mut process = library.begin("What is the answer?");
        // Supervisor, words, answer.
        library.model.wait_for_requests(3).await;
        process.kill().unwrap();
        process.wait().unwrap();

        let report = library.run(None).await;
        assert_eq!(report["status"], "done", "{kept:?}: {report:#}");
        let result = &report["results"][0];
        assert_eq!((&result["output"], &result["confidence"]), (&json!("42"), &json!(0.9)));
        assert_eq!(result["tools"].as_array().unwrap().len(), 2, "{result:#}");
        assert_eq!(library.stage("words").len(), 1, "paid once: {kept:?}");
        assert_eq!(library.stage("answer").len(), 2, "the call that had no answer, again");

        let shown = library.perihelion(&["trace", &library.thread().to_string()]).await;
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        for drawn in [AGENT, "words", "search", "answer", "APPROVED"] {
            assert!(shown.contains(drawn), "{drawn} is not in the trace:\n{shown}");
        }
    }
}

/// S1.06, X3: the steps of the pipeline are compared as well.
#[tokio::test]
async fn a_thread_with_a_pipeline_is_replayed_offline_with_every_stage() {
    for kept in BOTH {
        let script = script().rule(words()).rule(quotation()).rule(approved());
        let library = Library::open(kept, script, &[("a.txt", "The answer is 42.\n")]).await;
        assert_eq!(library.run(Some("What is the answer?")).await["status"], "done");
        let requests = library.model.requests().len();
        let report = library.replay().await;
        assert!(report.divergence.is_none(), "{kept:?}: {report:#?}");
        assert_eq!(library.model.requests().len(), requests, "nobody is asked");
    }
}
