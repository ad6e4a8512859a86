//! Requests for approval that are taken back: their threads continue, are edited or ended without an answer (S3.09).

use serde_json::{Value, json};

use super::served::Served;
use super::{on_both, saying};

on_both!(a_request_whose_thread_continued_reads_as_withdrawn_and_takes_no_answer);

/// S3.09
async fn a_request_whose_thread_continued_reads_as_withdrawn_and_takes_no_answer(served: Served) {
    let mut expected = Vec::new();
    for how in
        ["asked on", "edited", "cancelled by the command line", "cancelled as a task", "left"]
    {
        let (thread, id) = waiting(&served).await;
        let at = |path: &str| format!("/threads/{thread}{path}");
        match how {
            "asked on" => {
                let (_, done) = served.post(&at("/runs/wait"), &saying("hello")).await;
                assert_eq!(done["answer"], "Hello from the star.", "{done}");
            }
            "edited" => {
                let edit = json!({ "values": { "plan": [] }, "as_node": "qa" });
                assert_eq!(served.post(&at("/state"), &edit).await.0, 200);
            }
            "cancelled by the command line" => {
                let update = ["threads", "update", &thread, "--set", "plan=[]"];
                served.program(&update).await;
            }
            "cancelled as a task" => {
                let (_, runs) = served.get(&at("/runs")).await;
                let task = runs[0]["run_id"].as_str().unwrap();
                let (code, reply) =
                    served.post(&format!("/a2a/tasks/{task}:cancel"), &json!({})).await;
                assert_eq!(code, 200, "{reply}");
            }
            _ => {}
        }
        let is = if how == "left" { "pending" } else { "withdrawn" };
        expected.push((how, id, is));
    }
    let (_, history) = served.get("/v1/approvals/history").await;
    let all = history["requests"].as_array().unwrap();
    for (how, id, is) in &expected {
        let one = all.iter().find(|one| one["id"] == id.as_str()).unwrap();
        assert_eq!(one["status"], *is, "{how}: {one}");
        assert_eq!(one["decided_by"], Value::Null, "{how}: {one}");
        if *is == "withdrawn" {
            let late = served.post(&format!("/v1/approvals/{id}/approve"), &json!({})).await;
            assert_eq!(late.0, 409, "{how}: {}", late.1);
        }
    }
    assert_eq!(served.read("notes.jsonl"), "", "nothing was sent");
    // What is asked still is decided, and stays so.
    let left = &expected.last().unwrap().1;
    let (code, reply) = served.post(&format!("/v1/approvals/{left}/approve"), &json!({})).await;
    assert_eq!(code, 200, "{reply}");
    let is_approved = |history: &Value| {
        let all = history["requests"].as_array().unwrap();
        all.iter().any(|one| one["id"] == left.as_str() && one["status"] == "approved")
    };
    served.until_got("/v1/approvals/history", is_approved).await;
}

/// Returns a thread that waits for a decision, and the decision's id.
async fn waiting(served: &Served) -> (String, String) {
    let thread = served.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let (_, waits) = served.post(&wait, &saying("approve this")).await;
    let id = waits["__interrupt__"][0]["id"].as_str().unwrap_or_else(|| panic!("{waits}"));
    (thread, id.to_owned())
}
