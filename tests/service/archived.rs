//! Archived threads as clients and the command line meet them (X4).

use std::path::Path;

use perihelion_database::{Database, query};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::people::{ask, id, key};
use super::served::Served;
use super::{on_both, saying};

on_both!(
    every_api_opens_an_archived_thread_as_it_was,
    lists_leave_archived_threads_where_they_are,
    pruning_leaves_archived_threads_where_they_are,
    a_server_archives_threads_by_itself_and_continues_them,
    an_archived_thread_of_another_tenant_is_as_unknown_as_any,
);

/// Starts a server with an archive; the events of runs are kept for no time, so that threads can go at once.
async fn archiving(served: Served) -> (Served, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap().to_owned();
    let more = [("PERIHELION_ARCHIVE_DIR", dir.as_str()), ("PERIHELION_EVENTS_KEEP_SEC", "0.001")];
    (served.again_with(&more).await, directory)
}

fn files(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

/// Returns how many threads are in files.
async fn archived(served: &Served) -> i64 {
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    let count = query("SELECT count(*) FROM thread WHERE archived IS NOT NULL AND root_id IS NULL");
    let count = database.fetch_optional(&count).await.unwrap().unwrap().get(0).unwrap();
    database.close().await;
    count
}

/// Archives what is at rest, and returns how many threads that were.
async fn archive(served: &Served) -> u64 {
    let args = ["threads", "archive", "--older-than", "0s", "--json"];
    let report: Value = serde_json::from_str(&served.program(&args).await).unwrap();
    assert_eq!(report["failed"], 0);
    report["archived"].as_u64().unwrap()
}

async fn conversation(served: &Served, questions: &[&str]) -> String {
    let thread = served.thread().await;
    for question in questions {
        let wait = format!("/threads/{thread}/runs/wait");
        assert_eq!(served.post(&wait, &saying(question)).await.0, 200);
    }
    thread
}

async fn every_api_opens_an_archived_thread_as_it_was(served: Served) {
    let (served, directory) = archiving(served).await;
    let thread = conversation(&served, &["hello", "hello again"]).await;
    let runs = served.get(&format!("/threads/{thread}/runs")).await.1;
    let run = runs[1]["run_id"].as_str().unwrap().to_owned();
    let paths = [
        format!("/threads/{thread}"),
        format!("/threads/{thread}/state"),
        format!("/threads/{thread}/history"),
        format!("/threads/{thread}/runs/{run}/join"),
        format!("/v1/threads/{thread}/trace"),
        format!("/v1/threads/{thread}/report"),
        format!("/v1/threads/{thread}/artifacts"),
    ];
    let commands = [
        vec!["threads", "state", &thread, "--json"],
        vec!["threads", "history", &thread, "--json"],
        vec!["trace", &thread],
        vec!["replay", &thread],
    ];
    for path in &paths {
        let before = served.get(path).await;
        assert_eq!(before.0, 200, "{path}: {before:?}");
        assert_eq!(archive(&served).await, 1, "{path}");
        assert_eq!(archived(&served).await, 1, "{path}");
        assert_eq!(served.get(path).await, before, "{path}");
        assert_eq!(archived(&served).await, 0, "{path}");
    }
    for command in &commands {
        let before = served.program(command).await;
        assert_eq!(archive(&served).await, 1, "{command:?}");
        assert_eq!(served.program(command).await, before, "{command:?}");
        assert_eq!(archived(&served).await, 0, "{command:?}");
    }
    // What a copy shares stays until the copy is gone.
    assert_eq!(archive(&served).await, 1);
    let (code, copy) = served.post(&format!("/threads/{thread}/copy"), &json!({})).await;
    assert_eq!(code, 200, "{copy}");
    let state = served.get(&format!("/threads/{thread}/state")).await.1;
    assert_eq!(copy["values"], state["values"]);
    assert_eq!(archive(&served).await, 0, "both share their steps");
    let gone = format!("/threads/{}", copy["thread_id"].as_str().unwrap());
    assert_eq!(served.send(reqwest::Method::DELETE, &gone, &json!({})).await.0, 204);
    assert_eq!(archive(&served).await, 1);

    // All its files are gone with the thread.
    assert!(files(directory.path()) > 1);
    let path = format!("/threads/{thread}");
    assert_eq!(served.send(reqwest::Method::DELETE, &path, &json!({})).await.0, 204);
    assert_eq!(files(directory.path()), 0);
    assert_eq!(served.get(&path).await.0, 404);
}

async fn lists_leave_archived_threads_where_they_are(served: Served) {
    let (served, directory) = archiving(served).await;
    let thread = conversation(&served, &["hello", "hello again"]).await;
    let search = async |body: Value| served.post("/threads/search", &body).await.1;
    let all_runs = async || served.get("/v1/runs").await.1;
    let without_values = |mut list: Value| {
        for one in list.as_array_mut().unwrap() {
            let one = one.as_object_mut().unwrap();
            one.remove("values");
            one.remove("archived");
        }
        list
    };
    let wanted = [
        json!({}),
        json!({ "status": "idle" }),
        json!({ "metadata": { "user": "u1" } }),
        json!({ "ids": [thread] }),
        json!({ "text": "hello" }),
    ];
    let mut before = Vec::new();
    for body in &wanted {
        let found = search(body.clone()).await;
        assert!(found[0]["values"].is_object() && found[0]["archived"].is_null(), "{found}");
        before.push(without_values(found));
    }
    let runs = all_runs().await;
    let count = served.post("/threads/count", &json!({})).await;
    let list = served.program(&["threads", "list", "--json"]).await;
    let show = served.program(&["threads", "show", &thread, "--json"]).await;
    assert_eq!(archive(&served).await, 1);
    for (body, before) in wanted.iter().zip(before) {
        let found = search(body.clone()).await;
        assert_eq!((&found[0]["values"], &found[0]["archived"]), (&Value::Null, &json!(true)));
        assert_eq!(without_values(found), before, "{body}");
    }
    assert_eq!(all_runs().await, runs);
    assert!(runs["runs"][0]["number"].as_u64().is_some() || runs[0]["number"].is_u64(), "{runs}");
    assert_eq!(served.post("/threads/count", &json!({})).await, count);
    let as_archived = |json: &str| json.replace("\"archived\":false", "\"archived\":true");
    assert_eq!(served.program(&["threads", "list", "--json"]).await, as_archived(&list));
    assert_eq!(served.program(&["threads", "show", &thread, "--json"]).await, as_archived(&show));
    let doctor = served.command(&["doctor"]).output().await.unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("archive:") && doctor.contains("is writable"), "{doctor}");
    assert_eq!(archived(&served).await, 1, "nothing was opened");
    assert_eq!(served.get(&format!("/threads/{thread}")).await.0, 200);
    assert_eq!(archived(&served).await, 0);

    // A file that is gone is an error that names it, and no empty thread.
    assert_eq!(archive(&served).await, 1);
    for file in std::fs::read_dir(directory.path()).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    let (code, refused) = served.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(code, 500, "{refused}");
    let refused = served.refused(&["threads", "state", &thread]).await;
    assert!(refused.contains(&thread) && refused.contains("store.archived"), "{refused}");
    let path = format!("/threads/{thread}");
    assert_eq!(served.send(reqwest::Method::DELETE, &path, &json!({})).await.0, 204);
}

async fn a_server_archives_threads_by_itself_and_continues_them(served: Served) {
    let (served, directory) = archiving(served).await;
    let thread = conversation(&served, &["hello"]).await;
    let served = served.again_with(&[("PERIHELION_ARCHIVE_AFTER", "0s")]).await;
    for _ in 0..500 {
        if files(directory.path()) == 1 {
            break;
        }
        perihelion::clock::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(files(directory.path()), 1);
    let wait = format!("/threads/{thread}/runs/wait");
    let (code, done) = served.post(&wait, &saying("hello again")).await;
    assert_eq!(code, 200, "{done}");
    assert_eq!(done["messages"].as_array().unwrap().len(), 4, "{done}");
}

async fn an_archived_thread_of_another_tenant_is_as_unknown_as_any(served: Served) {
    let (served, directory) = archiving(served).await;
    let scopes = ["--scopes", "read,run,approve"];
    let ours = key(&served, &["ours", scopes[0], scopes[1]]).await;
    let theirs = key(&served, &["theirs", "--tenant", "acme", scopes[0], scopes[1]]).await;
    let ours = [("x-api-key", ours.as_str())];
    let theirs = [("x-api-key", theirs.as_str())];
    let thread = id(&ask(&served, "POST", "/threads", &theirs, Some(json!({}))).await);
    let wait = format!("/threads/{thread}/runs/wait");
    assert_eq!(ask(&served, "POST", &wait, &theirs, Some(saying("hello"))).await.0, 200);
    let path = format!("/threads/{thread}");
    let before = ask(&served, "GET", &path, &theirs, None).await;
    assert_eq!(archive(&served).await, 1);
    assert_eq!(ask(&served, "GET", &path, &ours, None).await.0, 404);
    assert_eq!(ask(&served, "DELETE", &path, &ours, None).await.0, 404);
    assert_eq!((files(directory.path()), archived(&served).await), (1, 1));
    assert_eq!(ask(&served, "GET", &path, &theirs, None).await, before);
    assert_eq!(archived(&served).await, 0);
}

async fn pruning_leaves_archived_threads_where_they_are(served: Served) {
    let (served, _directory) = archiving(served).await;
    conversation(&served, &["hello"]).await;
    let prune = ["threads", "prune", "--keep-steps", "3", "--json"];
    let shorten = async |more: &str| -> Value {
        let args = [&prune[..], &[more]].concat();
        serde_json::from_str(&served.program(&args).await).unwrap()
    };
    assert_eq!(shorten("--yes").await["shortened"].as_array().unwrap().len(), 1);
    assert_eq!(archive(&served).await, 1);
    for more in ["--dry-run", "--yes"] {
        assert_eq!(shorten(more).await["shortened"], json!([]), "{more}");
        assert_eq!(archived(&served).await, 1, "{more}");
    }
}
