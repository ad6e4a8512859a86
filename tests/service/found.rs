//! Threads are found by the words of their titles, also by those that nobody gave them (S3.13).

use serde_json::json;

use super::served::Served;
use super::{on_both, saying};

on_both!(threads_are_found_by_words_of_their_titles_however_many_there_are);

/// S3.13
async fn threads_are_found_by_words_of_their_titles_however_many_there_are(served: Served) {
    let (code, named) =
        served.post("/threads", &json!({ "metadata": { "title": "Where the Zebra lives" } })).await;
    assert_eq!(code, 200, "{named}");
    let reply = served.thread().await;
    let wait = format!("/threads/{reply}/runs/wait");
    assert_eq!(served.post(&wait, &saying("Does a zebra sleep?")).await.0, 200);
    let other = served.thread().await;
    let wait = format!("/threads/{other}/runs/wait");
    assert_eq!(served.post(&wait, &saying("And the walrus?")).await.0, 200);

    let found = async |body| {
        let (code, found) = served.post("/threads/search", &body).await;
        assert_eq!(code, 200, "{found}");
        let ids = found.as_array().unwrap().iter().map(|one| one["thread_id"].clone());
        ids.collect::<Vec<_>>()
    };
    let zebras =
        found(json!({ "title": "zebra", "sort_by": "created_at", "sort_order": "asc" })).await;
    assert_eq!(zebras, [named["thread_id"].clone(), json!(reply)]);
    let second = json!({ "title": "ZEBRA", "sort_by": "created_at", "sort_order": "asc", "limit": 1, "offset": 1 });
    assert_eq!(found(second).await, [json!(reply)]);
    assert_eq!(found(json!({ "title": "walrus", "status": "idle" })).await, [json!(other)]);
    assert!(found(json!({ "title": "walrus", "status": "busy" })).await.is_empty());
    assert!(found(json!({ "title": "quagga" })).await.is_empty());
}
