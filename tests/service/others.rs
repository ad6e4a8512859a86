//! A thread is its user's: others of the tenant look at it, and do not change, stop or delete anything of it (S3.04).

use serde_json::{Value, json};

use super::people::{id, key};
use super::served::Served;
use super::users::{Headers, by_key, sent_as, with_ann_and_bob};
use super::{on_both, saying};

on_both!(
    other_users_cannot_change_stop_or_delete_the_threads_of_a_user,
    a_reader_stops_no_run_by_leaving_its_stream,
    who_decides_a_call_changes_nothing_else_of_its_thread,
    a_file_gives_nobody_the_thread_of_another_user,
    an_assistant_stays_while_crons_of_other_users_name_it,
);

/// What Ann has: a thread with a run that has ended and one that is under way, the same of OpenAI's and of A2A's.
struct Hers {
    thread: String,
    ended: String,
    running: String,
    response: String,
    ended_response: String,
    task: String,
    cron: String,
}

async fn begun(served: &Served, ann: &Headers) -> Hers {
    let thread = id(&sent_as(served, ann, "POST", "/threads", Some(json!({}))).await);
    let runs = format!("/threads/{thread}/runs");
    sent_as(served, ann, "POST", &format!("{runs}/wait"), Some(saying("hello"))).await;
    let (_, listed) = sent_as(served, ann, "GET", &runs, None).await;
    let (_, running) = sent_as(served, ann, "POST", &runs, Some(saying("hang"))).await;
    let respond = async |input: &str| {
        let asked = json!({ "model": "swarm", "input": input, "background": input == "hang" });
        let (code, made) = sent_as(served, ann, "POST", "/v1/responses", Some(asked)).await;
        assert_eq!(code, 200, "{made}");
        made["id"].as_str().unwrap().to_owned()
    };
    let message = json!({
        "message": { "role": "ROLE_USER", "messageId": "m", "parts": [{ "text": "hang" }] },
        "configuration": { "returnImmediately": true },
    });
    let mut versioned = ann.clone();
    versioned.push(("a2a-version", "1.0".to_owned()));
    let (_, task) = sent_as(served, &versioned, "POST", "/a2a/message:send", Some(message)).await;
    let task = task["task"]["id"].as_str().unwrap().to_owned();
    let push = json!({ "id": "hers", "url": "https://hers.example.com/", "token": "secret" });
    let pushes = format!("/a2a/tasks/{task}/pushNotificationConfigs");
    let (code, why) = sent_as(served, &versioned, "POST", &pushes, Some(push)).await;
    assert_eq!(code, 200, "{why}");
    let cron = json!({ "assistant_id": "swarm", "schedule": "0 0 1 1 *", "input": { "question": "hello" } });
    let (code, cron) = sent_as(served, ann, "POST", &format!("{runs}/crons"), Some(cron)).await;
    assert_eq!(code, 200, "{cron}");
    Hers {
        cron: cron["cron_id"].as_str().unwrap().to_owned(),
        ended: listed[0]["run_id"].as_str().unwrap().to_owned(),
        running: running["run_id"].as_str().unwrap().to_owned(),
        response: respond("hang").await,
        ended_response: respond("hello").await,
        task,
        thread,
    }
}

/// S3.03, S3.04
async fn other_users_cannot_change_stop_or_delete_the_threads_of_a_user(served: Served) {
    let (served, ann, bob) = with_ann_and_bob(served).await;
    let plain = by_key(&key(&served, &["plain", "--scopes", "read,run,approve,manage"]).await);
    let hers = begun(&served, &ann).await;
    let Hers { thread, ended, running, .. } = &hers;
    let at = |path: &str| format!("/threads/{thread}{path}");
    let fresh = id(&sent_as(&served, &ann, "POST", "/threads", Some(json!({}))).await);
    let title = json!({ "metadata": { "title": "mine" } });
    let prune = |strategy: &str| json!({ "thread_ids": [thread], "strategy": strategy });
    let to_fresh = json!({ "model": "swarm", "input": "hi", "metadata": { "thread_id": fresh } });
    for who in [&bob, &plain] {
        let own = id(&sent_as(&served, who, "POST", "/threads", Some(json!({}))).await);
        for (method, path, body) in [
            ("PATCH", at(""), Some(title.clone())),
            ("POST", at("/state"), Some(json!({ "values": { "plan": [] } }))),
            ("POST", at(&format!("/runs/{running}/cancel")), Some(json!({}))),
            ("POST", at(&format!("/runs/{running}/cancel?action=rollback")), Some(json!({}))),
            ("POST", "/runs/cancel".to_owned(), Some(json!({ "thread_id": thread }))),
            ("POST", "/runs/cancel".to_owned(), Some(json!({ "run_ids": [running] }))),
            ("GET", at(&format!("/runs/{running}/stream?cancel_on_disconnect=true")), None),
            ("HEAD", format!("/runs/{running}/stream?cancel_on_disconnect=1"), None),
            ("DELETE", at(&format!("/runs/{ended}")), None),
            ("POST", format!("/v1/responses/{}/cancel", hers.response), Some(json!({}))),
            ("DELETE", format!("/v1/responses/{}", hers.ended_response), None),
            ("POST", "/threads/prune".to_owned(), Some(prune("keep_latest"))),
            ("POST", "/threads/prune".to_owned(), Some(prune("delete"))),
            ("POST", "/threads/prune".to_owned(), Some(json!({ "thread_ids": [own, thread] }))),
            ("DELETE", at(""), None),
            ("POST", format!("/threads/{fresh}/runs"), Some(saying("hello"))),
            ("POST", "/v1/responses".to_owned(), Some(to_fresh.clone())),
        ] {
            let (code, why) = sent_as(&served, who, method, &path, body).await;
            assert_eq!(code, 403, "{method} {path}: {why}");
        }
        // Of all that are open none is theirs.
        let all = Some(json!({ "status": "all" }));
        let (code, why) = sent_as(&served, who, "POST", "/runs/cancel", all).await;
        assert_eq!(code, 404, "{why}");
        let mut versioned = who.clone();
        versioned.push(("a2a-version", "1.0".to_owned()));
        let cancel = format!("/a2a/tasks/{}:cancel", hers.task);
        let (code, why) = sent_as(&served, &versioned, "POST", &cancel, Some(json!({}))).await;
        assert!((400..500).contains(&code) && why.to_string().contains("another user"), "{why}");
        let pushes = format!("/a2a/tasks/{}/pushNotificationConfigs", hers.task);
        let taken = json!({ "id": "hers", "url": "https://evil.example.com/" });
        for (method, path, body) in [
            ("POST", pushes.clone(), Some(taken)),
            ("DELETE", format!("{pushes}/hers"), None),
            ("GET", format!("{pushes}/hers"), None),
            ("GET", pushes.clone(), None),
        ] {
            let (code, why) = sent_as(&served, &versioned, method, &path, body).await;
            assert!((400..500).contains(&code), "{method} {path}: {why}");
            assert!(why.to_string().contains("another user"), "{method} {path}: {why}");
        }
        for (method, body) in [("PATCH", Some(json!({ "enabled": false }))), ("DELETE", None)] {
            let cron = format!("/runs/crons/{}", hers.cron);
            let (code, why) = sent_as(&served, who, method, &cron, body).await;
            assert_eq!(code, 403, "{method} {cron}: {why}");
        }
        let there = sent_as(&served, who, "GET", &format!("/threads/{own}"), None).await;
        assert_eq!(there.0, 200, "nothing is pruned beside what is refused");
    }
    all_is_as_it_was(&served, &ann, &hers, &fresh).await;
    // She does all of it.
    for (method, path, body, code) in [
        ("PATCH", at(""), Some(title), 200),
        ("POST", at(&format!("/runs/{running}/cancel?wait=true")), Some(json!({})), 200),
        ("DELETE", at(&format!("/runs/{ended}")), None, 204),
        ("POST", format!("/v1/responses/{}/cancel", hers.response), Some(json!({})), 200),
        ("POST", "/threads/prune".to_owned(), Some(prune("keep_latest")), 200),
        ("DELETE", at(""), None, 204),
    ] {
        let (found, why) = sent_as(&served, &ann, method, &path, body).await;
        assert_eq!(found, code, "{method} {path}: {why}");
    }
}

async fn all_is_as_it_was(served: &Served, ann: &Headers, hers: &Hers, fresh: &str) {
    let get = async |path: String| sent_as(served, ann, "GET", &path, None).await.1;
    let runs = get(format!("/threads/{}/runs", hers.thread)).await;
    let pushes = format!("{}/a2a/tasks/{}/pushNotificationConfigs/hers", served.url, hers.task);
    let mut asked = served.http.get(pushes).header("a2a-version", "1.0");
    for (name, value) in ann {
        asked = asked.header(*name, value);
    }
    let push: Value = asked.send().await.unwrap().json().await.unwrap();
    assert_eq!(push["url"], "https://hers.example.com/", "{push}");
    let of = |id: &str| -> Value {
        let found = runs.as_array().unwrap().iter().find(|run| run["run_id"] == id);
        found.unwrap_or_else(|| panic!("{runs}"))["status"].clone()
    };
    assert_eq!(of(&hers.ended), "success");
    assert_eq!(of(&hers.running), "running");
    let thread = get(format!("/threads/{}", hers.thread)).await;
    assert_eq!(thread["metadata"].get("title"), None, "{thread}");
    assert_eq!(get(format!("/v1/responses/{}", hers.response)).await["status"], "in_progress");
    assert_eq!(get(format!("/v1/responses/{}", hers.ended_response)).await["status"], "completed");
    let noted = get(format!("/threads/{fresh}")).await;
    assert_eq!(noted["metadata"].get("assistant_id"), None, "a refused run noted it: {noted}");
}

/// S3.04
async fn a_reader_stops_no_run_by_leaving_its_stream(served: Served) {
    let reads = by_key(&key(&served, &["reads", "--scopes", "read"]).await);
    let runs = by_key(&key(&served, &["runs", "--scopes", "read,run"]).await);
    let thread = id(&sent_as(&served, &runs, "POST", "/threads", Some(json!({}))).await);
    let before = served.model.requests().len();
    let path = format!("/threads/{thread}/runs");
    let (_, run) = sent_as(&served, &runs, "POST", &path, Some(saying("hang"))).await;
    served.model.wait_for_requests(before + 1).await;
    let run = run["run_id"].as_str().unwrap();
    let streams = [format!("{path}/{run}/stream"), format!("/runs/{run}/stream")];
    for stream in &streams {
        for method in ["GET", "HEAD"] {
            let leaves = format!("{stream}?cancel_on_disconnect=true");
            let (code, why) = sent_as(&served, &reads, method, &leaves, None).await;
            assert_eq!(code, 403, "{method} {leaves}: {why}");
        }
    }
    // Who may run stops it by leaving.
    let asked = served.http.get(format!("{}{}?cancel_on_disconnect=true", served.url, streams[0]));
    let opened = asked.header(runs[0].0, &runs[0].1).send().await.unwrap();
    let (_, found) = sent_as(&served, &runs, "GET", &format!("{path}/{run}"), None).await;
    assert_eq!(found["status"], "running", "{found}");
    drop(opened);
    sent_as(&served, &runs, "GET", &format!("{path}/{run}/join"), None).await;
    let (_, found) = sent_as(&served, &runs, "GET", &format!("{path}/{run}"), None).await;
    assert_eq!(found["status"], "interrupted", "{found}");
}

/// S3.04, S3.09
async fn who_decides_a_call_changes_nothing_else_of_its_thread(served: Served) {
    let (served, ann, bob) = with_ann_and_bob(served).await;
    let thread = id(&sent_as(&served, &ann, "POST", "/threads", Some(json!({}))).await);
    let wait = format!("/threads/{thread}/runs/wait");
    let (_, asked) = sent_as(&served, &ann, "POST", &wait, Some(saying("approve this"))).await;
    let question = asked["__interrupt__"][0]["id"].as_str().unwrap_or_else(|| panic!("{asked}"));
    let history = format!("/threads/{thread}/history");
    let (_, steps) = sent_as(&served, &ann, "GET", &history, None).await;
    let oldest = steps.as_array().unwrap().last().unwrap()["checkpoint_id"].clone();
    let clerk = json!({ "graph_id": "swarm", "name": "Clerk" });
    let (code, clerk) = sent_as(&served, &bob, "POST", "/assistants", Some(clerk)).await;
    let clerk = if code == 200 { clerk["assistant_id"].clone() } else { json!("swarm") };
    let of_thread = format!("/threads/{thread}");
    let (_, before) = sent_as(&served, &ann, "GET", &of_thread, None).await;
    let approval = json!({ question: { "decisions": [{ "type": "approve" }] } });
    let answer = json!({ "assistant_id": clerk, "command": { "resume": approval } });
    for (name, value) in [
        ("checkpoint_id", oldest),
        ("interrupt_before", json!(["qa"])),
        ("interrupt_after", json!("*")),
        ("multitask_strategy", json!("rollback")),
        ("multitask_strategy", json!("interrupt")),
    ] {
        let mut more = answer.clone();
        more[name] = value;
        let (code, why) = sent_as(&served, &bob, "POST", &wait, Some(more)).await;
        assert_eq!(code, 403, "{name}: {why}");
    }
    let (_, now) = sent_as(&served, &ann, "GET", &history, None).await;
    assert_eq!(now, steps, "nothing went back");
    let (code, done) = sent_as(&served, &bob, "POST", &wait, Some(answer)).await;
    assert_eq!((code, &done["answer"]), (200, &json!("Hello from the star.")), "{done}");
    let (_, after) = sent_as(&served, &ann, "GET", &of_thread, None).await;
    assert_eq!(after["metadata"], before["metadata"]);
}

/// Takes a thread out as a file, and deletes it.
async fn taken_out(served: &Served, who: &Headers, thread: &str) -> String {
    let mut asked = served.http.get(format!("{}/v1/threads/{thread}/export", served.url));
    for (name, value) in who {
        asked = asked.header(*name, value);
    }
    let file = asked.send().await.unwrap().text().await.unwrap();
    let gone = sent_as(served, who, "DELETE", &format!("/threads/{thread}"), None).await;
    assert_eq!(gone.0, 204, "{gone:?}");
    file
}

async fn imported(served: &Served, who: &Headers, file: &str) -> (u16, Value) {
    let mut asked = served.http.post(format!("{}/v1/threads/import", served.url));
    for (name, value) in who {
        asked = asked.header(*name, value);
    }
    let answer = asked.body(file.to_owned()).send().await.unwrap();
    let code = answer.status().as_u16();
    (code, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or(Value::Null))
}

/// S3.03, S3.04
async fn a_file_gives_nobody_the_thread_of_another_user(served: Served) {
    let (served, ann, bob) = with_ann_and_bob(served).await;
    let scopes = "read,run,approve";
    let plain = by_key(&key(&served, &["plain", "--scopes", scopes]).await);
    let agent = by_key(&key(&served, &["agent", "--scopes", &format!("{scopes},act_as")]).await);
    let thread = id(&sent_as(&served, &ann, "POST", "/threads", Some(json!({}))).await);
    let at = format!("/threads/{thread}");
    // An open question, which another turn follows: the user stands in an earlier step as well.
    for text in ["hello", "approve this"] {
        let wait = format!("{at}/runs/wait");
        assert_eq!(sent_as(&served, &ann, "POST", &wait, Some(saying(text))).await.0, 200);
    }
    let hers = taken_out(&served, &ann, &thread).await;
    for who in [&bob, &plain] {
        let (code, why) = imported(&served, who, &hers).await;
        assert_eq!(code, 403, "{why}");
        assert_eq!(sent_as(&served, &ann, "GET", &at, None).await.0, 404, "nothing is left of it");
    }
    let title = || Some(json!({ "metadata": { "title": "mine" } }));
    for who in [&agent, &ann] {
        assert_eq!(imported(&served, who, &hers).await.0, 200);
        assert_eq!(sent_as(&served, &bob, "PATCH", &at, title()).await.0, 403);
        assert_eq!(sent_as(&served, &ann, "DELETE", &at, None).await.0, 204);
    }
    // A file that names no user makes a thread of who imports it.
    let thread = id(&sent_as(&served, &plain, "POST", "/threads", Some(json!({}))).await);
    let at = format!("/threads/{thread}");
    let wait = format!("{at}/runs/wait");
    assert_eq!(sent_as(&served, &plain, "POST", &wait, Some(saying("hello"))).await.0, 200);
    let nobodys = taken_out(&served, &plain, &thread).await;
    assert_eq!(imported(&served, &bob, &nobodys).await.0, 200);
    assert_eq!(sent_as(&served, &ann, "PATCH", &at, title()).await.0, 403);
    assert_eq!(sent_as(&served, &bob, "PATCH", &at, title()).await.0, 200);
}

/// S3.04
async fn an_assistant_stays_while_crons_of_other_users_name_it(served: Served) {
    let (served, ann, bob) = with_ann_and_bob(served).await;
    let clerk = json!({ "graph_id": "swarm", "name": "Clerk" });
    let (_, clerk) = sent_as(&served, &bob, "POST", "/assistants", Some(clerk)).await;
    let place = format!("/assistants/{}", clerk["assistant_id"].as_str().unwrap());
    let mut crons = Vec::new();
    for who in [&ann, &bob] {
        let thread = id(&sent_as(&served, who, "POST", "/threads", Some(json!({}))).await);
        let cron = json!({
            "assistant_id": clerk["assistant_id"], "schedule": "0 0 1 1 *", "input": { "question": "hello" },
        });
        let path = format!("/threads/{thread}/runs/crons");
        let (code, cron) = sent_as(&served, who, "POST", &path, Some(cron)).await;
        assert_eq!(code, 200, "{cron}");
        crons.push(format!("/runs/crons/{}", cron["cron_id"].as_str().unwrap()));
    }
    let (code, why) = sent_as(&served, &bob, "DELETE", &place, None).await;
    assert_eq!(code, 409, "{why}");
    assert!(why["detail"].as_str().unwrap().ends_with(": 1"), "one is another user's: {why}");
    assert_eq!(sent_as(&served, &bob, "GET", &place, None).await.0, 200);
    assert_eq!(sent_as(&served, &ann, "DELETE", &crons[0], None).await.0, 204);
    assert_eq!(sent_as(&served, &bob, "DELETE", &place, None).await.0, 204);
    let (_, left) = sent_as(&served, &bob, "POST", "/runs/crons/count", Some(json!({}))).await;
    assert_eq!(left, json!(0), "its crons go with it");
}
