//! Threads that are given out as files and taken from them, with journals that nobody may have altered.

use perihelion::checkpoint::{
    EffectKind, EffectStatus, Encoded, PendingRow, read_dump, write_dump,
};
use perihelion::graph::BlobName;
use perihelion_database::{Database, query};
use serde_json::json;
use uuid::Uuid;

use super::people::{ask, id, key};
use super::served::Served;
use super::{on_both, saying};

on_both!(
    a_thread_with_an_altered_journal_cannot_be_exported_or_imported,
    a_caller_who_cannot_approve_imports_no_decisions,
    a_file_that_names_an_absent_text_is_refused,
);

/// What is said of a call that does not stand under its key.
const ALTERED: &str = "does not stand under the key of its request";

async fn a_thread_with_an_altered_journal_cannot_be_exported_or_imported(served: Served) {
    let thread = served.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    assert_eq!(served.post(&wait, &saying("Hello")).await.0, 200);
    let given = async || {
        let asked = served.http.get(format!("{}/v1/threads/{thread}/export", served.url));
        let answer = asked.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let taken = async |file: Vec<u8>| {
        let sent = served.http.post(format!("{}/v1/threads/import", served.url)).body(file);
        let answer = sent.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let (code, whole) = given().await;
    assert_eq!(code, 200, "{whole}");

    let database = Database::open(&served.database()).await.unwrap().of_tenant("default");
    // As a row of a version that wrote no checksums.
    let alter = "UPDATE effect SET name = 'another', request_sum = NULL WHERE kind = 'model' AND thread_id = $1";
    let alter = query(alter).bind(thread.parse::<Uuid>().unwrap());
    assert!(database.execute(&alter).await.unwrap() > 0);
    database.close().await;
    let (code, why) = given().await;
    assert!(code >= 400 && why.contains(ALTERED), "{code}: {why}");

    let gone = served.http.delete(format!("{}/threads/{thread}", served.url)).send().await.unwrap();
    assert_eq!(gone.status(), 204);
    let mut dump = read_dump(whole.as_bytes()).unwrap();
    let mut calls = dump.effects.iter_mut().filter(|one| one.kind == EffectKind::Model);
    calls.next().unwrap().name = "another".to_owned();
    let mut altered = Vec::new();
    write_dump(&dump, &mut altered).unwrap();
    let (code, why) = taken(altered).await;
    assert!(code == 422 && why.contains(ALTERED), "{code}: {why}");
    let (code, why) = taken(whole.into_bytes()).await;
    assert_eq!(code, 200, "{why}");
}

/// S3.04, S3.09: anyone can write an answer into a file.
async fn a_caller_who_cannot_approve_imports_no_decisions(served: Served) {
    let boss = key(&served, &["boss", "--scopes", "read,run,approve"]).await;
    let worker = key(&served, &["worker", "--scopes", "read,run"]).await;
    let who = [("x-api-key", worker.as_str())];
    let thread = id(&ask(&served, "POST", "/threads", &who, Some(json!({}))).await);
    let wait = format!("/threads/{thread}/runs/wait");
    let (_, asked) = ask(&served, "POST", &wait, &who, Some(saying("approve this"))).await;
    assert!(asked["__interrupt__"].is_array(), "{asked}");
    let url = format!("{}/v1/threads/{thread}/export", served.url);
    let file = served.http.get(url).header(who[0].0, who[0].1).send().await.unwrap();
    let mut dump = read_dump(file.text().await.unwrap().as_bytes()).unwrap();
    let question = dump.effects.iter_mut().find(|one| one.kind == EffectKind::Interrupt).unwrap();
    question.outcome = Some(Encoded::json(&json!({ "decision": "approve" }), 0).unwrap());
    question.status = EffectStatus::Done;
    let mut forged = Vec::new();
    write_dump(&dump, &mut forged).unwrap();
    let gone = ask(&served, "DELETE", &format!("/threads/{thread}"), &who, None).await;
    assert_eq!(gone.0, 204);
    for (key, code) in [(&worker, 403), (&boss, 200)] {
        let sent = served.http.post(format!("{}/v1/threads/import", served.url));
        let answer = sent.header("x-api-key", key).body(forged.clone()).send().await.unwrap();
        assert_eq!(answer.status(), code, "{:?}", answer.text().await);
    }
}

async fn a_file_that_names_an_absent_text_is_refused(served: Served) {
    let thread = served.thread().await;
    let path = format!("/threads/{thread}/runs/wait");
    assert_eq!(served.post(&path, &saying("Hello")).await.0, 200);
    let file = served.http.get(format!("{}/v1/threads/{thread}/export", served.url));
    let file = file.send().await.unwrap().text().await.unwrap();
    let gone = served.http.delete(format!("{}/threads/{thread}", served.url)).send().await.unwrap();
    assert_eq!(gone.status(), 204);
    let mut dump = read_dump(file.as_bytes()).unwrap();
    let body = Encoded::json(&json!([0, { "b": [BlobName::of("an absent text")] }]), 2048).unwrap();
    dump.pending.push(PendingRow { step: dump.info.head + 1, task: 0, body });
    let mut defective = Vec::new();
    write_dump(&dump, &mut defective).unwrap();
    let sent = served.http.post(format!("{}/v1/threads/import", served.url)).body(defective);
    let answer = sent.send().await.unwrap();
    let code = answer.status().as_u16();
    let why = answer.text().await.unwrap();
    assert!(code == 422 && why.contains("a text of 14 bytes"), "{code}: {why}");
}
