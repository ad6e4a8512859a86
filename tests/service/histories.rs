//! The states of a thread, as many as a client asks for, and those alone that it asks for.

use serde_json::{Value, json};

use super::served::Served;
use super::{on_both, saying};

on_both!(a_history_is_filtered_before_it_is_cut, a_long_history_is_the_same_whole_and_by_pages,);

async fn history(served: &Served, thread: &str, asked: &Value) -> Vec<Value> {
    let (code, states) = served.post(&format!("/threads/{thread}/history"), asked).await;
    assert_eq!(code, 200, "{states}");
    states.as_array().unwrap().clone()
}

async fn edit(served: &Served, thread: &str, number: u32) {
    let edit = json!({ "values": { "plan": [number.to_string()] }, "as_node": "qa" });
    let (code, reply) = served.post(&format!("/threads/{thread}/state"), &edit).await;
    assert_eq!(code, 200, "{reply}");
}

/// X5
async fn a_history_is_filtered_before_it_is_cut(served: Served) {
    let thread = served.thread().await;
    let (_, run) = served.post(&format!("/threads/{thread}/runs"), &saying("hello")).await;
    let run = run["run_id"].as_str().unwrap();
    served.get(&format!("/threads/{thread}/runs/{run}/join")).await;
    let whole = history(&served, &thread, &json!({ "limit": 1_000 })).await;
    for number in 0..20 {
        edit(&served, &thread, number).await;
    }
    let wanted = json!({ "limit": 1, "metadata": { "source": "input" } });
    let found = history(&served, &thread, &wanted).await;
    assert_eq!(found, whole[whole.len() - 1..]);
    let last = whole.last().unwrap();
    let wanted = json!({ "limit": 1_000, "metadata": { "run_id": last["metadata"]["run_id"] } });
    assert_eq!(history(&served, &thread, &wanted).await, whole);
    let wanted = json!({ "limit": 5, "metadata": { "source": "update" }, "select": ["metadata"] });
    let edits = history(&served, &thread, &wanted).await;
    let is_edit = |state: &Value| {
        state["metadata"]["source"] == "update" && state.as_object().unwrap().len() == 1
    };
    assert!(edits.len() == 5 && edits.iter().all(is_edit), "{edits:?}");
    let none = json!({ "metadata": { "source": "input", "step": 7_000 } });
    assert!(history(&served, &thread, &none).await.is_empty());
}

/// X5
async fn a_long_history_is_the_same_whole_and_by_pages(served: Served) {
    let thread = served.thread().await;
    served.post(&format!("/threads/{thread}/runs/wait"), &saying("hello")).await;
    for number in 0..40 {
        edit(&served, &thread, number).await;
    }
    let whole = history(&served, &thread, &json!({ "limit": 1_000 })).await;
    // A line for each, so that each is sent before the next one is read.
    let place = format!("{}/threads/{thread}/history?limit=1000", served.url);
    let text = served.http.get(place).send().await.unwrap().text().await.unwrap();
    assert_eq!(text.lines().count(), whole.len() + 1);
    let steps: Vec<u64> =
        whole.iter().map(|state| state["metadata"]["step"].as_u64().unwrap()).collect();
    let all: Vec<u64> = (1..=steps[0]).rev().collect();
    assert_eq!(steps, all);
    assert_eq!(whole[0], served.get(&format!("/threads/{thread}/state")).await.1);
    let mut pages: Vec<Value> = Vec::new();
    loop {
        let before = pages.last().map(|state| state["checkpoint"].clone());
        let page = history(&served, &thread, &json!({ "limit": 7, "before": before })).await;
        if page.is_empty() {
            break;
        }
        pages.extend(page);
    }
    assert_eq!(pages, whole);
}
