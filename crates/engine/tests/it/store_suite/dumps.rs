//! Threads as files, carried between stores.

use perihelion_engine::checkpoint::{
    Codec, Encoded, Error, Fence, MemoryStore, NewThread, Steps as _, ThreadDump, ThreadStatus,
    Threads as _, Transfer as _, read_dump, write_dump,
};
use serde_json::json;

use super::{
    forks::fork,
    histories::seqs,
    on_every_store_sealed_too, stores,
    stores::Fixture,
    writer::{Writer, encoded, new_thread, prose},
};

on_every_store_sealed_too!(
    a_thread_travels_to_every_store_and_back,
    a_forks_file_holds_the_shared_steps_too,
    a_truncated_thread_travels_with_its_oldest_snapshot,
    importing_an_existing_thread_is_refused_without_a_change,
    an_altered_step_is_refused,
    a_row_that_is_there_twice_is_refused,
    a_thread_with_the_place_of_another_thread_s_subgraph_is_refused,
    an_imported_thread_continues,
);

/// A thread with something of everything, a subgraph's thread included.
async fn rich_thread(on: &Fixture) -> Writer {
    let mut writer = Writer::new(&on.store).await;
    let thread = writer.thread;
    let fence = writer.fence;
    on.store.begin_run(Fence::new(thread, fence), writer.run, false).await.unwrap();
    let awkward = Encoded { codec: Codec::Json, bytes: b" {\"b\":1.0,\n \"a\": 1e2} ".to_vec() };
    let packed = Encoded::json(&"long ".repeat(2000), 0).unwrap();
    for delta in [encoded(&json!({"z": 1, "a": 0.1})), awkward, packed, prose(3000)] {
        let mut call = writer.tool_call(0);
        call.outcome = Some(delta.clone());
        on.store
            .record_effects(Fence::new(thread, fence), std::slice::from_ref(&call))
            .await
            .unwrap();
        let commit = writer.next(delta);
        writer.commit(&commit).await.unwrap();
    }
    on.store.put_snapshot(thread, &writer.snapshot(2)).await.unwrap();
    on.store.save_pending(Fence::new(thread, fence), &writer.pending(1), &[]).await.unwrap();
    on.store
        .record_effects(Fence::new(thread, fence), std::slice::from_ref(&writer.question(1).1))
        .await
        .unwrap();
    let child = NewThread {
        id: thread.child("team:1:0"),
        root: Some(thread),
        namespace: "team:1:0".to_owned(),
        ..new_thread()
    };
    let child = on.store.create(child).await.unwrap().id;
    Writer::claim(&on.store, child).await.steps(2).await;
    writer
}

fn file(dump: &ThreadDump) -> Vec<u8> {
    let mut file = Vec::new();
    write_dump(dump, &mut file).unwrap();
    file
}

/// The file without what an import leaves behind: the lease, the origin, and that a run was under way.
fn content(dump: &ThreadDump) -> String {
    let mut dump = dump.clone();
    for info in
        std::iter::once(&mut dump.info).chain(dump.children.iter_mut().map(|it| &mut it.info))
    {
        (info.owner, info.lease_until, info.forked_from) = (None, None, None);
        if info.status == ThreadStatus::Busy {
            let error =
                "it was exported in the middle of its run; resume it to continue from there";
            (info.status, info.error) = (ThreadStatus::Failed, Some(error.to_owned()));
        }
    }
    String::from_utf8(file(&dump)).unwrap()
}

/// X4
async fn a_thread_travels_to_every_store_and_back(on: &Fixture) {
    let writer = rich_thread(on).await;
    let first = on.store.export(writer.thread).await.unwrap();
    let mut dump = first.clone();
    for next in [stores::sqlite().await, stores::memory().await, stores::postgres().await] {
        if next.url == on.url && on.url.is_some() {
            on.store.delete(writer.thread).await.unwrap();
        }
        next.store.import(&read_dump(&file(&dump)[..]).unwrap()).await.unwrap();
        dump = next.store.export(writer.thread).await.unwrap();
        assert_eq!(content(&dump), content(&first));
        assert_eq!(next.store.open_interrupts(writer.thread).await.unwrap().len(), 1);
        next.store.delete(writer.thread).await.unwrap();
        next.store.close().await;
    }
    let _ = on.store.delete(writer.thread).await;
    on.store.import(&dump).await.unwrap();
    assert_eq!(content(&on.store.export(writer.thread).await.unwrap()), content(&first));
}

async fn a_forks_file_holds_the_shared_steps_too(on: &Fixture) {
    let source = Writer::with_steps(&on.store, 5).await;
    let mut branch = fork(on, source.thread, 3).await;
    branch.steps(1).await;
    let dump = on.store.export(branch.thread).await.unwrap();
    assert_eq!(seqs(&dump.steps), [1, 2, 3, 4]);
    let elsewhere = MemoryStore::new();
    elsewhere.import(&dump).await.unwrap();
    assert_eq!(elsewhere.info(branch.thread).await.unwrap().forked_from, None);
    assert_eq!(elsewhere.load(branch.thread, None).await.unwrap().steps, dump.steps);
}

async fn a_truncated_thread_travels_with_its_oldest_snapshot(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 5).await;
    on.store.put_snapshot(writer.thread, &writer.snapshot(3)).await.unwrap();
    on.store.truncate(writer.thread, 3).await.unwrap();
    let dump = read_dump(&file(&on.store.export(writer.thread).await.unwrap())[..]).unwrap();
    on.store.delete(writer.thread).await.unwrap();
    on.store.import(&dump).await.unwrap();
    let loaded = on.store.load(writer.thread, None).await.unwrap();
    assert_eq!(loaded.snapshot, Some(writer.snapshot(3)));
    assert_eq!(seqs(&loaded.steps), [4, 5]);
    assert!(on.store.load(writer.thread, Some(2)).await.is_err());
    // The state of a whole thread is what its steps make; only an archive has another snapshot of it.
    let whole = Writer::with_steps(&on.store, 2).await;
    let dump = on.store.export(whole.thread).await.unwrap();
    on.store.delete(whole.thread).await.unwrap();
    let refused = on.store.import(&ThreadDump { returned: vec![whole.snapshot(2)], ..dump }).await;
    assert!(matches!(refused, Err(Error::Import(_))), "{refused:?}");
}

async fn importing_an_existing_thread_is_refused_without_a_change(on: &Fixture) {
    let writer = rich_thread(on).await;
    let dump = on.store.export(writer.thread).await.unwrap();
    let refused = on.store.import(&dump).await;
    assert!(matches!(refused, Err(Error::ThreadExists(id)) if id == writer.thread), "{refused:?}");

    // Only a subgraph's thread is in the way: nothing of the whole is kept.
    on.store.delete(writer.thread).await.unwrap();
    let blocker = NewThread { id: dump.children[0].info.id, ..new_thread() };
    on.store.create(blocker).await.unwrap();
    let refused = on.store.import(&dump).await;
    assert!(matches!(refused, Err(Error::ThreadExists(_))), "{refused:?}");
    assert!(on.store.info(writer.thread).await.is_err());
}

async fn an_altered_step_is_refused(on: &Fixture) {
    let writer = rich_thread(on).await;
    let good = on.store.export(writer.thread).await.unwrap();
    on.store.delete(writer.thread).await.unwrap();
    let alterations: [fn(&mut ThreadDump); 6] = [
        |dump| dump.steps[2].delta = encoded(&json!("forged")),
        |dump| dump.steps[1].frontier.push(b' '),
        |dump| drop(dump.steps.remove(1)),
        |dump| drop(dump.steps.pop()),
        |dump| dump.steps.swap(0, 1),
        |dump| dump.children[0].steps[1].hash = [7; 32],
    ];
    for alter in alterations {
        let mut bad = good.clone();
        alter(&mut bad);
        let refused = on.store.import(&bad).await;
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
    }
    assert!(on.store.info(writer.thread).await.is_err());
    on.store.import(&good).await.unwrap();
}

async fn a_row_that_is_there_twice_is_refused(on: &Fixture) {
    let writer = rich_thread(on).await;
    let good = on.store.export(writer.thread).await.unwrap();
    on.store.delete(writer.thread).await.unwrap();
    let alterations: [fn(&mut ThreadDump); 3] = [
        |dump| dump.effects.push(dump.effects[0].clone()),
        |dump| dump.pending.push(dump.pending[0].clone()),
        |dump| dump.runs.push(dump.runs[0].clone()),
    ];
    for alter in alterations {
        let mut bad = good.clone();
        alter(&mut bad);
        let refused = on.store.import(&bad).await.unwrap_err().to_string();
        assert!(refused.contains("twice"), "{refused}");
    }
    assert!(on.store.info(writer.thread).await.is_err());
}

/// A later step of that thread would take its state for its own.
async fn a_thread_with_the_place_of_another_thread_s_subgraph_is_refused(on: &Fixture) {
    let victim = Writer::with_steps(&on.store, 2).await.thread;
    let writer = rich_thread(on).await;
    let good = on.store.export(writer.thread).await.unwrap();
    on.store.delete(writer.thread).await.unwrap();
    let plant = |alter: &dyn Fn(&mut ThreadDump)| {
        let mut bad = good.clone();
        alter(&mut bad);
        bad
    };
    let place = "team:3:0";
    let bad = [
        plant(&|dump| dump.info.root = Some(victim)),
        plant(&|dump| place.clone_into(&mut dump.info.namespace)),
        plant(&|dump| dump.children[0].info.root = Some(victim)),
        plant(&|dump| dump.children[0].info.namespace.clear()),
        plant(&|dump| {
            dump.children[0].info.id = victim.child(place);
            place.clone_into(&mut dump.children[0].info.namespace);
        }),
    ];
    for bad in bad {
        let refused = on.store.import(&bad).await;
        assert!(matches!(refused, Err(Error::Import(_))), "{refused:?}");
    }
    assert!(on.store.info(victim.child(place)).await.is_err());
    on.store.import(&good).await.unwrap();
}

async fn an_imported_thread_continues(on: &Fixture) {
    let writer = rich_thread(on).await;
    let dump = on.store.export(writer.thread).await.unwrap();
    on.store.delete(writer.thread).await.unwrap();
    on.store.import(&dump).await.unwrap();
    let info = on.store.info(writer.thread).await.unwrap();
    assert_eq!((info.owner, info.fence), (None, writer.fence), "no lease, and no token twice");
    let mut heir = Writer::claim(&on.store, writer.thread).await;
    assert_eq!(
        on.store
            .begin_run(Fence::new(heir.thread, heir.fence), heir.run, false)
            .await
            .unwrap()
            .number,
        2
    );
    heir.steps(2).await;
    assert_eq!(on.store.load(heir.thread, None).await.unwrap().info.head, 6);
}

#[tokio::test]
async fn a_cut_damaged_or_foreign_file_is_refused_with_the_line() {
    let on = stores::memory().await;
    let writer = rich_thread(&on).await;
    let whole = String::from_utf8(file(&on.store.export(writer.thread).await.unwrap())).unwrap();
    read_dump(whole.as_bytes()).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let without = |at: usize| {
        let rest: Vec<&str> =
            lines.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, line)| *line).collect();
        rest.join("\n")
    };
    let last = lines.len();
    let altered = format!("line {last}: the lines before it were altered");
    let cases = [
        (String::new(), "empty".to_owned()),
        ("{\"some\": \"json\"}\n".to_owned(), "line 1: this is no exported thread".to_owned()),
        ("\u{7f}ELF".to_owned(), "line 1".to_owned()),
        (whole.replacen("\"version\":2", "\"version\":5", 1), "upgrade".to_owned()),
        (without(last - 1), format!("line {last}: the file ends before")),
        (lines[0].to_owned(), "line 2: the file ends before".to_owned()),
        (without(4), format!("line {}: {last} lines were written", last - 1)),
        (whole.replacen("{\"step\":", "{\"leap\":", 1), "line 3: it is damaged".to_owned()),
        (whole[..whole.len() / 2].to_owned(), "it is damaged".to_owned()),
        (format!("{whole}{whole}"), format!("line {}: something follows", last + 1)),
        (without(1), "line 2: a row precedes its thread".to_owned()),
        (whole.replacen("\"tenant\":\"", "\"tenant\":\"x", 1), altered.clone()),
        (whole.replacen("\"attempt\":1", "\"attempt\":2", 1), altered.clone()),
        (whole.replacen("\"digest\":\"", "\"digested\":\"", 1), altered),
    ];
    for (text, error_text) in cases {
        let message = read_dump(text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(&error_text), "{message} does not say: {error_text}");
    }
    assert!(read_dump(&b"\xff\xfe"[..]).is_err());
    let elsewhere = whole.replace('\n', "\r\n");
    assert!(read_dump(elsewhere.as_bytes()).is_ok(), "line ends are the carrier's");
}
