//! Encryption: what is in the file, whose keys open it, and what becomes of values that were touched.

use std::{path::Path, str::FromStr, sync::Arc};

use perihelion_engine::checkpoint::{
    EffectSettlement, EffectStatus, Error, EventRow, Fence, MemoryStore, NewThread, RunEnd,
    RunStatus, Store, ThreadStatus, blob_row, open, read_blob, read_dump, write_dump,
};
use perihelion_engine::graph::{BlobName, BlobText};
use serde_json::json;
use sqlx::ConnectOptions;

use super::{
    stores::{Fixture, keyring, sealed, sealed_sqlite, sqlite},
    writer::{Writer, encoded, new_thread},
};

const CANARY: &str = "canary-4711";

/// A thread with the canary in every place that people, models and tools write to.
async fn talkative(store: &Arc<dyn Store>) -> Writer {
    let title = Some(format!("title {CANARY}"));
    let thread = store.create(NewThread { title, ..new_thread() }).await.unwrap().id;
    let mut writer = Writer::claim(store, thread).await;
    let fence = writer.fence;
    store.begin_run(Fence::new(thread, fence), writer.run, false).await.unwrap();
    for number in 0..3 {
        let mut call = writer.tool_call(number);
        call.request = encoded(&json!({ "asked": CANARY }));
        store.record_effects(Fence::new(thread, fence), std::slice::from_ref(&call)).await.unwrap();
        store.settle_effect(Fence::new(thread, fence), &settlement(&call)).await.unwrap();
        let mut commit = writer.next(encoded(&json!([{ "said": CANARY, "number": number }])));
        commit.step.frontier = json!([CANARY]).to_string().into_bytes();
        commit.step.hash = chained(&writer, &commit);
        writer.commit(&commit).await.unwrap();
    }
    let kept = kept();
    let mut commit = writer.next(encoded(&json!([{ "n": "x", "u": {}, "b": [kept.name] }])));
    commit.blobs = vec![blob_row(thread, 4, &kept, usize::MAX).unwrap()];
    writer.commit(&commit).await.unwrap();
    let mut snapshot = writer.snapshot(2);
    snapshot.blobs = Some(encoded(&json!([kept.name])));
    snapshot.state = encoded(&json!({ "state": CANARY }));
    store.put_snapshot(thread, &snapshot).await.unwrap();
    let mut pending = writer.pending(0);
    pending.body = encoded(&json!({ "pending": CANARY }));
    store.save_pending(Fence::new(thread, fence), &pending, &[]).await.unwrap();
    let body = encoded(&json!([{ "event": CANARY }]));
    let run = writer.run;
    let at = chrono::DateTime::UNIX_EPOCH;
    let batch = EventRow { first: 1, count: 1, run, step: 3, body, at };
    store.append_events(Fence::new(thread, fence), &batch).await.unwrap();
    let (id, mut question) = writer.question(1);
    question.request = encoded(&json!({ "question": CANARY }));
    store.record_effects(Fence::new(thread, fence), std::slice::from_ref(&question)).await.unwrap();
    store.answer(id, &encoded(&json!({ "answer": CANARY }))).await.unwrap();
    let why = format!("failed: {CANARY}");
    let run = RunStatus::Failed;
    let thread_status = ThreadStatus::Failed;
    store
        .end_run(
            Fence::new(thread, fence),
            writer.run,
            RunEnd { error: Some(&why), ..RunEnd::new(run, thread_status) },
        )
        .await
        .unwrap();
    writer
}

fn kept() -> BlobText {
    let text: Arc<str> = format!("kept {CANARY}").into();
    BlobText { name: BlobName::of(&text), text }
}

fn chained(writer: &Writer, commit: &perihelion_engine::checkpoint::Commit) -> [u8; 32] {
    let step = &commit.step;
    let delta = step.delta.to_json_bytes().unwrap();
    perihelion_engine::checkpoint::chain_hash(&writer.hash, step.seq, &delta, &step.frontier)
}

fn settlement(call: &perihelion_engine::checkpoint::EffectRow) -> EffectSettlement {
    EffectSettlement {
        step: call.step,
        task: call.task,
        key: call.key.clone(),
        status: EffectStatus::Done,
        outcome: Some(encoded(&json!({ "told": CANARY }))),
        attempt: 1,
    }
}

/// Returns whether any file of a database holds some bytes.
fn contains(url: &str, bytes: &[u8]) -> bool {
    let path = Path::new(url.strip_prefix("sqlite:").unwrap());
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap();
    files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .any(|content| content.windows(bytes.len()).any(|window| window == bytes))
}

async fn statement(on: &Fixture, sql: String) {
    let options = sqlx::sqlite::SqliteConnectOptions::from_str(on.url.as_deref().unwrap()).unwrap();
    let mut connection = options.connect().await.unwrap();
    let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    assert!(done.rows_affected() > 0);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn id(writer: &Writer) -> String {
    format!("x'{}'", hex(writer.thread.0.as_bytes()))
}

/// Reads everything of a thread.
async fn read(store: &Arc<dyn Store>, writer: &Writer) -> Result<String, Error> {
    let mut file = Vec::new();
    write_dump(&store.export(writer.thread).await?, &mut file)?;
    Ok(String::from_utf8(file).unwrap())
}

#[tokio::test]
async fn the_file_contains_no_plain_text_of_a_conversation() {
    let plain = sqlite().await;
    let writer = talkative(&plain.store).await;
    let hash = writer.hash;
    assert!(contains(plain.url.as_deref().unwrap(), CANARY.as_bytes()), "the test sees nothing");
    for bytes in [hash, kept().name.hash] {
        assert!(contains(plain.url.as_deref().unwrap(), &bytes), "the test sees nothing");
    }

    let on = sealed_sqlite().await;
    let writer = talkative(&on.store).await;
    let url = on.url.as_deref().unwrap();
    assert!(!contains(url, CANARY.as_bytes()));
    // Nor what follows from it, by which a guess could be confirmed.
    assert!(!contains(url, &writer.hash) && !contains(url, &[2; 32]));
    assert!(!contains(url, &kept().name.hash));
    assert_eq!(read(&on.store, &writer).await.unwrap().matches(CANARY).count(), 18);
    on.store.close().await;
}

#[tokio::test]
async fn a_missing_or_wrong_key_opens_no_thread_and_loses_no_data() {
    let on = sealed_sqlite().await;
    let writer = talkative(&on.store).await;
    let plain = open(on.url.as_deref().unwrap()).await.unwrap();
    let refused = read(&plain, &writer).await.unwrap_err();
    assert!(refused.to_string().contains("encrypted with the key suite"), "{refused}");
    let other = sealed(Arc::clone(&plain), &["other"]);
    assert!(matches!(read(&other, &writer).await, Err(Error::NoKey { key }) if key == "suite"));
    let info = other.info(writer.thread).await.unwrap();
    assert_eq!(info.error.as_deref(), Some("(encrypted with the key suite)"), "it is listed");
    let key = *blake3::hash(b"not the suite's").as_bytes();
    let keys = perihelion_engine::checkpoint::Keyring::new([("suite".to_owned(), key)]).unwrap();
    let wrong: Arc<dyn Store> =
        Arc::new(perihelion_engine::checkpoint::SealedStore::new(plain, keys));
    assert!(matches!(read(&wrong, &writer).await, Err(Error::WrongKey { key }) if key == "suite"));
    read(&on.another().await, &writer).await.unwrap();
}

#[tokio::test]
async fn new_writes_take_the_first_key_and_older_ones_still_read() {
    let on = sqlite().await;
    let before = talkative(&on.store).await;
    let first = sealed(Arc::clone(&on.store), &["2025"]);
    let mut writer = talkative(&first).await;
    let (asked, question) = writer.question(7);
    let mut heir = Writer::claim(&first, writer.thread).await;
    first
        .record_effects(Fence::new(heir.thread, heir.fence), std::slice::from_ref(&question))
        .await
        .unwrap();
    let call = heir.tool_call(9);
    first
        .record_effects(Fence::new(heir.thread, heir.fence), std::slice::from_ref(&call))
        .await
        .unwrap();

    let both = sealed(Arc::clone(&on.store), &["2026", "2025"]);
    read(&both, &before).await.expect("threads from before encryption open");
    // What the older key began, the newer one ends, once.
    both.settle_effect(Fence::new(heir.thread, heir.fence), &settlement(&call)).await.unwrap();
    both.settle_effect(Fence::new(heir.thread, heir.fence), &settlement(&call)).await.unwrap();
    assert_eq!(both.asked_below(asked).await.unwrap(), Some(writer.thread));
    both.answer(asked, &encoded(&json!("yes"))).await.unwrap();
    let again = both.answer(asked, &encoded(&json!("no"))).await;
    assert!(matches!(again, Err(Error::InterruptClosed(id)) if id == asked));
    heir.store = Arc::clone(&both);
    heir.steps(1).await;
    assert_eq!(both.load(heir.thread, None).await.unwrap().steps.len(), 3, "after the snapshot");
    let one = sealed(Arc::clone(&on.store), &["2026"]);
    assert!(matches!(read(&one, &heir).await, Err(Error::NoKey { key }) if key == "2025"));
    writer = Writer::with_steps(&both, 2).await;
    read(&one, &writer).await.unwrap();
}

#[tokio::test]
async fn a_value_that_was_altered_moved_or_replaced_is_refused() {
    let on = sealed_sqlite().await;
    let one = talkative(&on.store).await;
    let other = talkative(&on.store).await;
    let one_id = id(&one);
    let other_id = id(&other);
    let from = |table: &str, column: &str, place: &str| {
        format!("(SELECT {column} FROM {table} WHERE thread_id = {place})")
    };
    let steps = ["delta", "frontier"];
    let set = |column: &str, value: &str| {
        format!("UPDATE step SET {column} = {value} WHERE thread_id = {one_id} AND seq = 3")
    };
    let mut touched = Vec::new();
    for column in steps {
        // A bit of the ciphertext; the same step of another thread; another step of the same thread.
        let last = format!("CASE substr({column}, -1) WHEN x'00' THEN x'01' ELSE x'00' END");
        let flipped = format!("substr({column}, 1, length({column}) - 1) || {last}");
        touched.push(set(column, &flipped));
        touched.push(set(column, &from("step", column, &format!("{other_id} AND seq = 3"))));
        touched.push(set(column, &from("step", column, &format!("{one_id} AND seq = 2"))));
    }
    let whole = from("step", "delta, frontier, hash, run", &format!("{other_id} AND seq = 3"));
    touched.push(set("(delta, frontier, hash, run)", &whole).replacen("SET ((", "SET (", 1));
    touched.push(format!(
        "UPDATE step SET codec = 0, delta = '[]', frontier = '[]' WHERE thread_id = {one_id} AND seq = 3"
    ));
    touched.push(set("kind", "'edit'"));
    let snapshot = from("snapshot", "state", &other_id);
    touched.push(format!("UPDATE snapshot SET state = {snapshot} WHERE thread_id = {one_id}"));
    let outcome = from("effect", "outcome", &format!("{one_id} AND step = 2"));
    touched.push(format!(
        "UPDATE effect SET outcome = {outcome} WHERE thread_id = {one_id} AND step = 1"
    ));
    touched.push(format!(
        "UPDATE effect SET name = 'files.read' WHERE thread_id = {one_id} AND step = 1"
    ));
    touched.push(format!(
        "UPDATE effect SET status = 'failed' WHERE thread_id = {one_id} AND step = 1"
    ));
    touched.push(format!(
        "UPDATE effect SET outcome_codec = 0, outcome = '1' WHERE thread_id = {one_id} AND step = 1"
    ));
    let text = from("blob", "body", &other_id);
    touched.push(format!("UPDATE blob SET body = {text} WHERE thread_id = {one_id}"));
    let last = "CASE substr(body, -1) WHEN x'00' THEN x'01' ELSE x'00' END";
    touched.push(format!(
        "UPDATE blob SET body = substr(body, 1, length(body) - 1) || {last} WHERE thread_id = {one_id}"
    ));
    touched
        .push(format!("UPDATE blob SET codec = 0, body = '\"other\"' WHERE thread_id = {one_id}"));
    touched.push(format!("DELETE FROM blob WHERE thread_id = {one_id}"));
    let whole = read(&on.store, &one).await.unwrap();
    let dump = read_dump(whole.as_bytes()).unwrap();
    for sql in touched {
        statement(&on, sql.clone()).await;
        let everything = async {
            let steps = on.store.history(one.thread, None, 9).await.map(drop);
            let loaded = on.store.load(one.thread, None).await.map(drop);
            let effects = on.store.effects(one.thread, None).await.map(drop);
            let text = serde_json::from_value(json!(kept().name)).unwrap();
            let text = read_blob(on.store.as_ref(), one.thread, &text, "it").await.map(drop);
            [steps, loaded, effects, text].into_iter().collect::<Result<(), Error>>()
        };
        let refused = everything.await;
        assert!(
            matches!(refused, Err(Error::Forged { thread, .. } | Error::Corrupt { thread, .. } | Error::Blob { thread, .. }) if thread == one.thread),
            "{sql}: {refused:?}"
        );
        on.store.delete(one.thread).await.unwrap();
        on.store.import(&dump).await.unwrap();
        on.store.put_snapshot(one.thread, &one.snapshot(2)).await.unwrap();
    }
    assert_eq!(read(&on.store, &one).await.unwrap(), whole);
}

#[tokio::test]
async fn a_fork_reads_only_its_shared_steps_even_after_its_source_is_deleted() {
    let on = sealed_sqlite().await;
    let mut source = Writer::with_steps(&on.store, 5).await;
    let mut child = super::forks::fork(&on, source.thread, 4).await;
    child.steps(2).await;
    let mut late = super::forks::fork(&on, child.thread, 5).await;
    late.steps(1).await;
    on.store.delete(source.thread).await.unwrap();
    on.store.delete(child.thread).await.unwrap();
    assert_eq!(on.store.load(late.thread, None).await.unwrap().steps.len(), 6);
    // A sibling's step does not pass for the fork's own, though it follows the same history.
    source = Writer::with_steps(&on.store, 3).await;
    let mut sibling = super::forks::fork(&on, source.thread, 2).await;
    sibling.steps(1).await;
    let source_id = id(&source);
    let sibling_id = id(&sibling);
    let columns = "delta, frontier, hash, run";
    statement(
        &on,
        format!(
            "UPDATE step SET ({columns}) = (SELECT {columns} FROM step WHERE thread_id = {sibling_id} AND seq = 3)
             WHERE thread_id = {source_id} AND seq = 3"
        ),
    )
    .await;
    let refused = on.store.load(source.thread, None).await;
    assert!(matches!(refused, Err(Error::Forged { .. })), "{refused:?}");
}

#[tokio::test]
async fn equal_content_is_not_recognisable_across_threads() {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let store = sealed(Arc::clone(&memory), &["suite"]);
    let one = talkative(&store).await;
    let other = talkative(&store).await;
    assert_eq!(one.hash, other.hash);
    let writers = (one, other);
    let one = &writers.0;
    let other = &writers.1;
    let one = memory.history(one.thread, None, 9).await.unwrap();
    let other = memory.history(other.thread, None, 9).await.unwrap();
    for (one, other) in one.iter().zip(&other) {
        assert_ne!(one.hash, other.hash);
        assert_ne!(one.delta, other.delta);
        assert_ne!(one.frontier, other.frontier);
    }
    let texts = [&writers.0, &writers.1];
    let mut hashes = Vec::new();
    for writer in texts {
        hashes.extend(memory.export(writer.thread).await.unwrap().blobs.iter().map(|row| row.hash));
    }
    assert_eq!(hashes.len(), 2);
    assert_ne!(hashes[0], hashes[1]);
}

#[test]
fn indistinguishable_keys_are_refused() {
    let key = |name: &str| (name.to_owned(), [1; 32]);
    for (keys, words) in [
        (vec![], "none"),
        (vec![key("a"), key("a")], "same name: a"),
        (vec![key("")], "1 to 32"),
        (vec![key("a b")], "a b"),
        (vec![key(&"a".repeat(33))], "1 to 32"),
    ] {
        let message = perihelion_engine::checkpoint::Keyring::new(keys).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(format!("{:?}", keyring(&["a", "b"])), "[\"a\", \"b\"]", "no key is shown");
}
