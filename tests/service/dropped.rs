//! What was answered and asked is still known once the log of what was told is dropped (`events.keep_sec`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use perihelion_database::{Database, query};
use serde_json::{Value, json};
use uuid::Uuid;

use super::on_both;
use super::protocol::{frames, is_lifecycle};
use super::served::Served;

on_both!(
    answers_and_questions_outlive_the_log,
    tasks_are_listed_by_their_states_without_a_log,
    a_thread_without_a_log_is_followed_with_its_newest_state_alone,
);

/// Drops the whole log, as retention does with what is old.
async fn drop_events(served: &Served) {
    let database = Database::open(&served.database()).await.unwrap();
    let dropped = database.of_tenant("default").execute(&query("DELETE FROM event")).await;
    assert!(dropped.unwrap() > 0);
    database.close().await;
}

async fn respond(served: &Served, input: &str, previous: &Value) -> Value {
    let body = json!({ "model": "swarm", "input": input, "previous_response_id": previous });
    let (code, reply) = served.post("/v1/responses", &body).await;
    assert_eq!(code, 200, "{reply}");
    reply
}

async fn send(served: &Served, text: &str, context: &Value) -> Value {
    let message = json!({
        "messageId": Uuid::now_v7(), "role": "ROLE_USER", "parts": [{ "text": text }], "contextId": context,
    });
    let (code, sent) = served.post("/a2a/message:send", &json!({ "message": message })).await;
    assert_eq!(code, 200, "{sent}");
    sent["task"].clone()
}

/// X5, X8
async fn answers_and_questions_outlive_the_log(served: Served) {
    let null = Value::Null;
    let asked = respond(&served, "clarify this", &null).await;
    let answered = respond(&served, "1945", &asked["id"]).await;
    let waiting = respond(&served, "approve this", &null).await;
    let task = send(&served, "approve this", &null).await;
    let done = send(&served, "hello", &null).await;
    let before = [&asked, &answered, &waiting].map(|one| one["output"].clone());
    assert_eq!(before[1][0]["content"][0]["text"], "Hello from the star.");
    drop_events(&served).await;
    let responses = [&asked, &answered, &waiting].map(|one| one["id"].as_str().unwrap());
    for (id, (output, asks)) in responses.iter().zip(before.iter().zip([true, false, true])) {
        let (_, now) = served.get(&format!("/v1/responses/{id}")).await;
        assert_eq!((&now["status"], &now["output"]), (&json!("completed"), output), "{now}");
        let wanted = if asks { json!("interrupted") } else { Value::Null };
        assert_eq!(now["metadata"]["status"], wanted, "{now}");
    }
    for one in [&task, &done] {
        let (_, now) = served.get(&format!("/a2a/tasks/{}", one["id"].as_str().unwrap())).await;
        assert_eq!(now, *one);
    }
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    // It is still answered.
    let approved = respond(&served, "approve", &waiting["id"]).await;
    assert_eq!(approved["output"][0]["content"][0]["text"], "Hello from the star.");
}

/// S2.12
async fn tasks_are_listed_by_their_states_without_a_log(served: Served) {
    let null = Value::Null;
    let waits = send(&served, "approve this", &null).await;
    let left = send(&served, "approve this", &null).await;
    // Another turn of its context, by a face that knows no tasks: the question was abandoned.
    let thread = left["contextId"].as_str().unwrap();
    let wait = format!("/threads/{thread}/runs/wait");
    assert_eq!(served.post(&wait, &super::saying("hello")).await.0, 200);
    let done = send(&served, "hello", &null).await;
    let again = send(&served, "hello again", &done["contextId"]).await;
    let taken_back = send(&served, "clarify this", &null).await;
    let cancel = format!("/a2a/tasks/{}:cancel", taken_back["id"].as_str().unwrap());
    assert_eq!(served.post(&cancel, &json!({})).await.0, 200);
    drop_events(&served).await;
    for (state, wanted) in [
        ("INPUT_REQUIRED", vec![&waits]),
        ("COMPLETED", vec![&again, &done]),
        ("CANCELED", vec![&taken_back, &left]),
        ("WORKING", vec![]),
    ] {
        let path = format!("/a2a/tasks?status=TASK_STATE_{state}&includeArtifacts=true");
        let (code, listed) = served.get(&path).await;
        assert_eq!(code, 200, "{listed}");
        let ids: Vec<&Value> =
            listed["tasks"].as_array().unwrap().iter().map(|task| &task["id"]).collect();
        let wanted: Vec<&Value> = wanted.into_iter().map(|task| &task["id"]).collect();
        assert_eq!(ids, wanted, "{state}: {listed}");
        assert_eq!(listed["totalSize"], wanted.len());
        for task in listed["tasks"].as_array().unwrap() {
            let (_, alone) =
                served.get(&format!("/a2a/tasks/{}", task["id"].as_str().unwrap())).await;
            assert_eq!(alone, *task);
        }
    }
}

/// X5
async fn a_thread_without_a_log_is_followed_with_its_newest_state_alone(served: Served) {
    let thread = served.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    for text in ["first", "second", "third"] {
        assert_eq!(served.post(&wait, &super::saying(text)).await.0, 200);
    }
    drop_events(&served).await;
    let id: Uuid = thread.parse().unwrap();
    let follow = async |since: u64, last: usize| {
        let body = json!({ "channels": ["lifecycle", "values"], "since": since });
        let ended = std::cell::Cell::new(0);
        frames(&served, id, &body, |frame| {
            ended.set(ended.get() + usize::from(is_lifecycle(frame, "completed")));
            ended.get() == last
        })
        .await
    };
    let all = follow(0, 3).await;
    let kinds: Vec<&str> = all.iter().map(|frame| frame["method"].as_str().unwrap()).collect();
    let [ran, ended] = ["lifecycle"; 2];
    assert_eq!(kinds, [ran, ended, ran, ended, ran, "values", ended], "{all:#?}");
    assert_eq!(all[5]["params"]["data"]["input_request"], "third");
    let since = all[3]["seq"].as_u64().unwrap();
    assert_eq!(follow(since, 1).await, all[4..]);
}

/// X5: the run continues, so no client is answered that it failed, or where the database is.
#[tokio::test]
async fn a_run_that_cannot_be_followed_has_not_failed() {
    let is_away = Arc::new(AtomicBool::new(false));
    let cut = Arc::clone(&is_away);
    let served = Served::behind(move |_| cut.load(Ordering::SeqCst)).await;
    let before = served.model.requests().len();
    let ask = |path: &str, body: Value| {
        let asked = served.http.post(format!("{}{path}", served.url));
        let asked = asked.header("content-type", "application/json").body(body.to_string());
        tokio::spawn(async move {
            let answer = asked.send().await.unwrap();
            (answer.status().as_u16(), answer.text().await.unwrap())
        })
    };
    let messages = json!([{ "role": "user", "content": "hang" }]);
    let chat = ask("/v1/chat/completions", json!({ "model": "swarm", "messages": messages }));
    let written = json!({ "model": "swarm", "input": "hang", "stream": true });
    let written = ask("/v1/responses", written);
    served.model.wait_for_requests(before + 2).await;
    is_away.store(true, Ordering::SeqCst);
    let (code, why) = chat.await.unwrap();
    assert_eq!(code, 503, "{why}");
    assert!(why.contains("the run continues"), "{why}");
    let (_, events) = written.await.unwrap();
    assert!(events.contains("response.created"), "{events}");
    assert!(!events.contains("response.failed"), "{events}");
    let (code, why) = served.get("/threads/0197a000-0000-7000-8000-00000000000a").await;
    assert_eq!((code, why.to_string().contains("postgres")), (503, false), "{why}");
}
