//! Threads at rest that are moved to files: whatever needs one brings it back as it was.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use perihelion_engine::checkpoint::{
    Claim, EffectRow, Error, EventRow, Fence, NewThread, RunEnd, RunStatus, StepRow, Store,
    ThreadDump, ThreadFilter, ThreadStatus, write_dump,
};
use perihelion_engine::failpoint::{Point, Side};
use perihelion_engine::ids::ThreadId;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::stores::Fixture;
use super::writer::{TTL, Writer, encoded, new_thread, prose};
use super::{on_durable_stores, on_store};
use crate::runner::world::at_points;

on_durable_stores!(
    whatever_needs_an_archived_thread_brings_it_back_as_it_was,
    lists_and_the_rows_of_threads_need_no_file,
    a_thread_that_is_not_at_rest_stays_in_the_database,
    a_run_that_begins_while_a_thread_is_archived_keeps_its_thread,
    processes_that_archive_or_open_a_thread_at_once_do_no_harm,
    a_deleted_thread_leaves_no_file,
    a_file_that_cannot_be_read_is_named_and_no_thread_looks_empty,
);
on_store!(sealed_sqlite on sealed_sqlite: whatever_needs_an_archived_thread_brings_it_back_as_it_was,
    a_file_of_an_encrypted_thread_is_encrypted);
on_store!(sealed_postgres on sealed_postgres: whatever_needs_an_archived_thread_brings_it_back_as_it_was,
    a_file_of_an_encrypted_thread_is_encrypted);

/// A process on the store of a test, and the directory of its archive.
pub struct Archives {
    pub store: Arc<dyn Store>,
    pub directory: TempDir,
}

impl Archives {
    pub async fn of(on: &Fixture) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { store: on.archiving(directory.path()).await, directory }
    }

    pub async fn archive(&self, thread: ThreadId) -> bool {
        self.store.archive(thread, later()).await.unwrap()
    }

    /// Returns the names of the files of a thread.
    pub fn files(&self, thread: ThreadId) -> Vec<String> {
        files(self.directory.path(), thread)
    }
}

pub fn files(directory: &Path, thread: ThreadId) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap();
    let names = names.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&thread.to_string())).collect()
}

/// Every thread is old then.
pub fn later() -> chrono::DateTime<chrono::Utc> {
    perihelion_engine::clock::now() + chrono::TimeDelta::hours(1)
}

/// A thread with something of everything that a file has, at rest.
pub async fn resting(store: &Arc<dyn Store>) -> Writer {
    let mut writer = Writer::new(store).await;
    let fence = Fence::new(writer.thread, writer.fence);
    store.begin_run(fence, writer.run, false).await.unwrap();
    for delta in [encoded(&json!({ "text": "a clear word" })), prose(3000), encoded(&json!([1.5]))]
    {
        let mut call = writer.tool_call(0);
        call.outcome = Some(delta.clone());
        store.record_effects(fence, std::slice::from_ref(&call)).await.unwrap();
        let commit = writer.next(delta);
        writer.commit(&commit).await.unwrap();
    }
    store.put_snapshot(writer.thread, &writer.snapshot(2)).await.unwrap();
    store.save_pending(fence, &writer.pending(1), &[]).await.unwrap();
    let child = NewThread {
        id: writer.thread.child("team:1:0"),
        root: Some(writer.thread),
        namespace: "team:1:0".to_owned(),
        ..new_thread()
    };
    let child = store.create(child).await.unwrap().id;
    Writer::claim(store, child).await.steps(2).await;
    rest(&writer).await;
    writer
}

pub async fn rest(writer: &Writer) {
    let end = RunEnd::new(RunStatus::Done, ThreadStatus::Idle);
    let fence = Fence::new(writer.thread, writer.fence);
    writer.store.end_run(fence, writer.run, end).await.unwrap();
}

/// The file of a thread, without the tokens, which rise.
pub fn content(dump: &ThreadDump) -> String {
    let mut dump = dump.clone();
    dump.info.fence = 0;
    dump.children.iter_mut().for_each(|child| child.info.fence = 0);
    let mut file = Vec::new();
    write_dump(&dump, &mut file).unwrap();
    String::from_utf8(file).unwrap()
}

pub async fn exported(store: &dyn Store, thread: ThreadId) -> String {
    content(&store.export(thread).await.unwrap())
}

type Access = fn(Arc<dyn Store>, ThreadId) -> Pin<Box<dyn Future<Output = Result<(), Error>>>>;

macro_rules! access {
    ($store:ident, $thread:ident: $access:expr) => {
        |$store, $thread| Box::pin(async move { $access.await.map(drop) })
    };
}

/// The effects with their outcomes as values: a file has them without the compression of their rows.
fn decoded(effects: Vec<EffectRow>) -> Vec<(EffectRow, Option<Value>)> {
    let decode = |mut effect: EffectRow| {
        let outcome = effect.outcome.take().map(|outcome| outcome.decode().unwrap());
        (effect, outcome)
    };
    effects.into_iter().map(decode).collect()
}

/// X4: each kind of access, with nothing before it that would bring the thread back.
async fn whatever_needs_an_archived_thread_brings_it_back_as_it_was(on: &Fixture) {
    let archives = Archives::of(on).await;
    let writer = resting(&archives.store).await;
    let thread = writer.thread;
    let before = exported(archives.store.as_ref(), thread).await;
    let effects = archives.store.effects(thread, None).await.unwrap();
    let history = archives.store.history(thread, None, 9).await.unwrap();
    let accesses: [Access; 9] = [
        access!(store, thread: store.load(thread, None)),
        access!(store, thread: store.load_since(thread, 2, None)),
        access!(store, thread: store.history(thread, None, 9)),
        access!(store, thread: store.history(thread, Some(2), 9)),
        access!(store, thread: store.effects(thread, Some(1))),
        access!(store, thread: store.effects_from(thread, 1)),
        access!(store, thread: store.blob(thread, &[7; 32])),
        access!(store, thread: store.export(thread)),
        access!(store, thread: store.load(thread.child("team:1:0"), None)),
    ];
    for (number, access) in accesses.into_iter().enumerate() {
        assert!(archives.archive(thread).await, "{number}");
        assert_eq!(on.own_steps(thread).await, Some(0));
        assert_eq!(on.own_steps(thread.child("team:1:0")).await, Some(0));
        assert_eq!(archives.files(thread).len(), number + 1);
        access(Arc::clone(&archives.store), thread).await.unwrap();
        assert_eq!(on.own_steps(thread).await, Some(3), "{number}");
        assert_eq!(exported(archives.store.as_ref(), thread).await, before, "{number}");
        let loaded = archives.store.load(thread, None).await.unwrap();
        assert_eq!(loaded.snapshot.map(|snapshot| snapshot.seq), Some(2), "{number}");
        assert!(loaded.info.archived.is_none());
    }
    assert!(archives.archive(thread).await);
    let brought_back = archives.store.effects(thread, None).await.unwrap();
    assert_eq!(decoded(brought_back), decoded(effects));
    assert!(archives.archive(thread).await);
    let hashes = |steps: Vec<StepRow>| -> Vec<_> {
        let hash = |step: StepRow| (step.seq, step.hash, step.delta.decode::<Value>().unwrap());
        steps.into_iter().map(hash).collect()
    };
    let brought_back = archives.store.history(thread, None, 9).await.unwrap();
    assert_eq!(hashes(brought_back), hashes(history));

    let late = writer.commit_as_before().await;
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");

    // What changes a thread.
    assert!(archives.archive(thread).await);
    archives.store.put_snapshot(thread, &writer.snapshot(3)).await.unwrap();
    assert!(archives.archive(thread).await);
    let mut successor = Writer::claim(&archives.store, thread).await;
    let commit = successor.next(encoded(&json!("more")));
    successor.commit(&commit).await.unwrap();
    archives
        .store
        .begin_run(Fence::new(thread, successor.fence), successor.run, false)
        .await
        .unwrap();
    rest(&successor).await;
    assert!(archives.archive(thread).await);
    let fork = NewThread { ..new_thread() };
    let fork = archives.store.fork(thread, 2, fork).await.unwrap().id;
    assert_eq!(archives.store.load(fork, None).await.unwrap().steps.last().unwrap().seq, 2);
    archives.store.delete(fork).await.unwrap();
    archives.store.put_snapshot(thread, &successor.snapshot(3)).await.unwrap();
    archives.store.truncate(thread, 3).await.unwrap();
    let before = exported(archives.store.as_ref(), thread).await;
    assert!(archives.archive(thread).await);
    assert_eq!(exported(archives.store.as_ref(), thread).await, before, "a shortened thread");
    archives.store.close().await;
}

impl Writer {
    /// Commits as a process that has not heard that the thread is no longer its own.
    async fn commit_as_before(&self) -> Result<(), Error> {
        self.store.commit(&self.next(encoded(&json!("late")))).await
    }
}

async fn lists_and_the_rows_of_threads_need_no_file(on: &Fixture) {
    let archives = Archives::of(on).await;
    let thread = resting(&archives.store).await.thread;
    let store = archives.store.as_ref();
    let info = store.info(thread).await.unwrap();
    let runs = store.runs(thread).await.unwrap();
    let counts = store.count_threads().await.unwrap();
    let position = store.event_position(thread).await.unwrap();
    assert!(archives.archive(thread).await);
    std::fs::remove_dir_all(archives.directory.path()).unwrap();
    let now = store.info(thread).await.unwrap();
    assert!(now.archived.is_some());
    assert_eq!((now.head, now.status, now.updated_at), (info.head, info.status, info.updated_at));
    assert_eq!(store.runs(thread).await.unwrap(), runs);
    let of_idle = |counts: &[(ThreadStatus, u64)]| counts.iter().any(|(_, count)| *count > 0);
    assert!(of_idle(&counts) && of_idle(&store.count_threads().await.unwrap()));
    assert_eq!(store.event_position(thread).await.unwrap(), position);
    assert_eq!(store.open_interrupts(thread).await.unwrap(), []);
    assert_eq!(store.events_after(thread, 0, 9).await.unwrap(), []);
    let all = store.list(&ThreadFilter::default()).await.unwrap();
    assert!(all.iter().any(|info| info.id == thread));
    store.delete(thread).await.unwrap();
    store.close().await;
}

async fn a_thread_that_is_not_at_rest_stays_in_the_database(on: &Fixture) {
    let archives = Archives::of(on).await;
    let store = &archives.store;
    let stays = async |thread: ThreadId, why: &str| {
        let before = exported(store.as_ref(), thread).await;
        assert!(!archives.archive(thread).await, "{why}");
        let place = (chrono::DateTime::UNIX_EPOCH, ThreadId(uuid::Uuid::nil()));
        let listed = store.archivable(later(), place, u32::MAX).await.unwrap();
        assert!(listed.iter().all(|(_, other)| *other != thread), "{why}");
        assert_eq!(archives.files(thread), [""; 0], "{why}");
        assert_eq!(exported(store.as_ref(), thread).await, before, "{why}");
    };
    stays(Writer::with_steps(store, 2).await.thread, "it runs").await;

    let asking = Writer::with_steps(store, 2).await;
    let fence = Fence::new(asking.thread, asking.fence);
    store.begin_run(fence, asking.run, false).await.unwrap();
    store.record_effects(fence, &[asking.question(0).1]).await.unwrap();
    let end = RunEnd::new(RunStatus::Failed, ThreadStatus::Failed);
    store.end_run(fence, asking.run, end).await.unwrap();
    stays(asking.thread, "it has an open question").await;

    let source = resting(store).await.thread;
    let fork = store.fork(source, 2, new_thread()).await.unwrap().id;
    stays(source, "a fork has its steps").await;
    stays(fork, "it has the steps of another").await;
    store.delete(fork).await.unwrap();
    assert!(archives.archive(source).await, "nothing shares its steps now");

    let heard = Writer::with_steps(store, 2).await;
    let fence = Fence::new(heard.thread, heard.fence);
    store.begin_run(fence, heard.run, false).await.unwrap();
    let body = encoded(&json!([{}]));
    let at = chrono::DateTime::UNIX_EPOCH;
    let event = EventRow { first: 1, count: 1, run: heard.run, step: 1, body, at };
    store.append_events(fence, &event).await.unwrap();
    rest(&heard).await;
    stays(heard.thread, "it has events").await;

    let old = resting(store).await.thread;
    let info = store.info(old).await.unwrap();
    assert!(!store.archive(old, info.updated_at).await.unwrap(), "it is too young");
    assert!(!store.archive(ThreadId::new(), later()).await.unwrap(), "there is no such thread");
    let without = on.another().await;
    assert!(!without.archive(old, later()).await.unwrap(), "this process has no archive");
    without.close().await;
    store.close().await;
}

async fn a_run_that_begins_while_a_thread_is_archived_keeps_its_thread(on: &Fixture) {
    let archives = Archives::of(on).await;
    let thread = resting(&archives.store).await.thread;
    let before = exported(archives.store.as_ref(), thread).await;
    let url = on.url.clone().unwrap();
    let claimed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let claims = Arc::clone(&claimed);
    at_points(move |point, side| {
        if (point, side) != (Point::ArchiveCommit, Side::Before)
            || claims.swap(true, std::sync::atomic::Ordering::SeqCst)
        {
            return;
        }
        let url = url.clone();
        let claim = move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let store = perihelion_engine::checkpoint::open(&url).await.unwrap();
                store.claim(Claim::new(thread, "another", TTL)).await.unwrap();
                store.close().await;
            });
        };
        std::thread::spawn(claim).join().unwrap();
    });
    assert!(!archives.archive(thread).await);
    assert!(claimed.load(std::sync::atomic::Ordering::SeqCst));
    assert_eq!(archives.files(thread), [""; 0]);
    assert_eq!(on.own_steps(thread).await, Some(3));
    let mut successor = Writer::claim(&archives.store, thread).await;
    successor.steps(1).await;
    let now = archives.store.export(thread).await.unwrap();
    assert_eq!(now.steps.len(), 4);
    assert!(before.contains("a clear word"));
    archives.store.close().await;
}

async fn processes_that_archive_or_open_a_thread_at_once_do_no_harm(on: &Fixture) {
    let archives = Archives::of(on).await;
    let other = on.archiving(archives.directory.path()).await;
    let thread = resting(&archives.store).await.thread;
    let before = exported(archives.store.as_ref(), thread).await;
    for round in 1..=5 {
        let both = [&archives.store, &other].map(|store| store.archive(thread, later()));
        let moved = futures::future::join_all(both).await;
        let moved = moved.into_iter().filter(|one| *one.as_ref().unwrap()).count();
        assert_eq!(moved, 1);
        assert_eq!(archives.files(thread).len(), round);
        let opened = (0..6).map(|number| {
            let store = if number % 2 == 0 { &archives.store } else { &other };
            exported(store.as_ref(), thread)
        });
        for read in futures::future::join_all(opened).await {
            assert_eq!(read, before);
        }
    }
    other.close().await;
    archives.store.close().await;
}

async fn a_deleted_thread_leaves_no_file(on: &Fixture) {
    let archives = Archives::of(on).await;
    for as_seen in [false, true] {
        let thread = resting(&archives.store).await.thread;
        assert!(archives.archive(thread).await);
        archives.store.load(thread, None).await.unwrap();
        let seen = archives.store.info(thread).await.unwrap();
        assert!(archives.archive(thread).await);
        assert_eq!(archives.files(thread).len(), 2, "the earlier one is still there");
        if as_seen {
            let moved = archives.store.delete_as_seen(&seen).await;
            assert!(matches!(moved, Err(Error::Moved { .. })), "{moved:?}");
            assert_eq!(archives.files(thread).len(), 2);
            let seen = archives.store.info(thread).await.unwrap();
            archives.store.delete_as_seen(&seen).await.unwrap();
        } else {
            archives.store.delete(thread).await.unwrap();
        }
        assert_eq!(archives.files(thread), [""; 0]);
        assert!(matches!(archives.store.info(thread).await, Err(Error::UnknownThread(_))));
        let read = archives.store.load(thread, None).await;
        assert!(matches!(read, Err(Error::UnknownThread(_))), "{read:?}");
    }
    // A process without the directory leaves the file to one that has it.
    let thread = resting(&archives.store).await.thread;
    assert!(archives.archive(thread).await);
    let without = on.another().await;
    without.delete(thread).await.unwrap();
    without.close().await;
    archives.store.sweep_archive().await.unwrap();
    assert_eq!(archives.files(thread), [""; 0]);
    archives.store.close().await;
}

async fn a_file_that_cannot_be_read_is_named_and_no_thread_looks_empty(on: &Fixture) {
    let archives = Archives::of(on).await;
    let thread = resting(&archives.store).await.thread;
    let other = resting(&archives.store).await.thread;
    let before = exported(archives.store.as_ref(), thread).await;
    assert!(archives.archive(thread).await && archives.archive(other).await);
    let path = archives.directory.path().join(&archives.files(thread)[0]);
    let whole = std::fs::read(&path).unwrap();
    let of_other = std::fs::read(archives.directory.path().join(&archives.files(other)[0]));
    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 1;
    for bad in [
        None,
        Some(Vec::new()),
        Some(whole[..whole.len() / 2].to_vec()),
        Some(altered),
        of_other.ok(),
    ] {
        match &bad {
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let store = archives.store.as_ref();
        let reads = [
            store.load(thread, None).await.err(),
            store.history(thread, None, 9).await.err(),
            store.effects(thread, None).await.err(),
            store.blob(thread, &[7; 32]).await.err(),
            store.export(thread).await.err(),
            store.fork(thread, 1, new_thread()).await.err(),
            store.claim(Claim::new(thread, "tester", TTL)).await.err(),
        ];
        for read in reads {
            let error = read.unwrap();
            assert!(matches!(error, Error::Archived { .. }) && error.is_of_thread(), "{error:?}");
            let name = path.file_name().unwrap().to_str().unwrap();
            let error = error.to_string();
            assert!(error.contains(name) && error.contains("restore it from a backup"), "{error}");
        }
        assert_eq!(store.info(thread).await.unwrap().head, 3);
    }
    let without = on.another().await;
    let error = without.load(thread, None).await.unwrap_err().to_string();
    assert!(error.contains("archive.dir is not set"), "{error}");
    without.close().await;
    std::fs::write(&path, whole).unwrap();
    assert_eq!(exported(archives.store.as_ref(), thread).await, before);
    archives.store.close().await;
}

async fn a_file_of_an_encrypted_thread_is_encrypted(on: &Fixture) {
    let archives = Archives::of(on).await;
    let thread = resting(&archives.store).await.thread;
    let before = exported(archives.store.as_ref(), thread).await;
    assert!(before.contains("a clear word") && before.contains("a.txt"));
    assert!(archives.archive(thread).await);
    let file = std::fs::File::open(archives.directory.path().join(&archives.files(thread)[0]));
    let text = zstd::decode_all(file.unwrap()).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains("clear word") && !text.contains("a.txt"), "{text}");
    // A process without the keys brings the rows back, and reads as little of them as ever.
    let keyless = perihelion_engine::checkpoint::open_with(
        on.url.as_deref().unwrap(),
        None,
        Some(perihelion_engine::checkpoint::Archive::new(archives.directory.path().into())),
    );
    let keyless = keyless.await.unwrap();
    let loaded = keyless.load(thread, None).await.unwrap();
    assert!(loaded.steps.iter().all(|step| step.delta.to_json_bytes().is_err()));
    keyless.close().await;
    assert_eq!(exported(archives.store.as_ref(), thread).await, before);
    archives.store.close().await;
}
