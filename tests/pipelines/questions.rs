//! Questions inside a pipeline are put at the top and answered once.

use serde_json::json;

use crate::library::{AGENT, BOTH, Library, approved, quotation, script, words};

/// S1.06
#[tokio::test]
async fn a_question_inside_a_pipeline_surfaces_and_is_answered_once() {
    for kept in BOTH {
        let script = script().rule(words()).rule(quotation()).rule(approved());
        let files = [("a.txt", "The answer is 42.\n"), ("b.txt", "The answer is 43.\n")];
        let library = Library::open(kept, script, &files).await;
        let report = library.run(Some("What is the answer?")).await;
        assert_eq!(report["status"], "interrupted", "{report:#}");
        let [open] = report["interrupts"].as_array().unwrap().as_slice() else {
            panic!("{report:#}")
        };
        assert_eq!((&open["kind"], &open["agent"]), (&json!("clarification"), &json!(AGENT)));
        assert_eq!(open["payload"]["options"], json!(["a.txt", "b.txt"]));

        let thread = library.thread().to_string();
        let shown = library.perihelion(&["threads", "show", &thread]).await;
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("Which one do you mean?") && shown.contains(AGENT), "{shown}");

        library.answer("b.txt").await.unwrap();
        let again = library.answer("a.txt").await.unwrap_err().to_string();
        assert!(again.contains("no open question"), "{again}");
        let report = library.run(None).await;
        assert_eq!(report["status"], "done", "{report:#}");
        let [_, read] = report["results"][0]["tools"].as_array().unwrap().as_slice() else {
            panic!("{report:#}")
        };
        assert_eq!(read["arguments"]["path"], "b.txt");
        assert_eq!(library.stage("words").len(), 1, "the stage before the question ran once");
    }
}
