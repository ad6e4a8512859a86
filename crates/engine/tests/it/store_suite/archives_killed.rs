//! Processes that are killed while they archive a thread or bring one back: nothing is lost, and nothing is left over.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::sys::signal::{Signal, raise};
use perihelion_database::{Database, query};
use perihelion_engine::checkpoint::{self, Archive, Error, Store};
use perihelion_engine::failpoint::{self, Point, Side};
use perihelion_engine::ids::ThreadId;

use super::archives::{exported, files, later, resting};
use perihelion_test_database::postgres::server;

/// What a child process is to do: archive the thread or open it, and at which point it dies.
const CHILD: &str = "PERIHELION_TEST_ARCHIVES";

async fn open(url: &str, directory: &Path) -> Arc<dyn Store> {
    let archive = Some(Archive::new(directory.to_owned()));
    checkpoint::open_with(url, None, archive).await.unwrap()
}

/// Does what the parent wants of this process; false in the parent.
async fn is_child() -> bool {
    let Ok(task) = std::env::var(CHILD) else { return false };
    let [url, directory, thread, point] = task.split('\n').collect::<Vec<_>>()[..] else {
        panic!("{task}")
    };
    let point = point.to_owned();
    let task = point.clone();
    failpoint::arm(move |at, side| {
        if at.name(side) == point {
            raise(Signal::SIGKILL).unwrap();
        }
    });
    let store = open(url, Path::new(directory)).await;
    let thread: ThreadId = thread.parse().unwrap();
    match &*task {
        "archive.return.before" | "archive.return.after" => drop(store.load(thread, None).await),
        "archive.remove.before" | "archive.remove.after" => store.delete(thread).await.unwrap(),
        _ => drop(store.archive(thread, later()).await),
    }
    true
}

/// Kills a child process at a point.
async fn killed(test: &str, url: &str, directory: &Path, thread: ThreadId, point: &str) {
    let test = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", &test]);
    child.env(CHILD, format!("{url}\n{}\n{thread}\n{point}", directory.display()));
    let output = child.output().await.unwrap();
    assert_eq!(output.status.signal(), Some(Signal::SIGKILL as i32), "{point}: {output:?}");
}

/// At each point of the way out, of the way back, and of a deletion.
async fn nothing_is_lost_or_left(test: &str, url: &str) {
    let directory = tempfile::tempdir().unwrap();
    let place: PathBuf = directory.path().to_owned();
    let store = open(url, &place).await;
    let database = Database::open(url).await.unwrap().of_all_tenants();
    let points =
        [Point::ArchiveWrite, Point::ArchiveCommit, Point::ArchiveReturn, Point::ArchiveRemove];
    let sides = [Side::Before, Side::After];
    for (point, side) in points.iter().flat_map(|point| sides.map(|side| (*point, side))) {
        let name = point.name(side);
        let thread = resting(&store).await.thread;
        let before = exported(store.as_ref(), thread).await;
        let is_back = matches!(point, Point::ArchiveReturn | Point::ArchiveRemove);
        if is_back {
            assert!(store.archive(thread, later()).await.unwrap(), "{name}");
        }
        killed(test, url, &place, thread, name).await;

        // What was left is removed once nobody can still need it.
        let sweep = async || {
            let long_ago = perihelion_engine::clock::now() - chrono::TimeDelta::hours(25);
            let age = query("UPDATE archive_file SET since = $1").bind(long_ago);
            database.execute(&age).await.unwrap();
            store.sweep_archive().await.unwrap();
        };
        if point == Point::ArchiveRemove {
            let read = store.load(thread, None).await;
            assert!(matches!(read, Err(Error::UnknownThread(_))), "{name}: {read:?}");
            assert_eq!(files(&place, thread).len(), usize::from(side == Side::Before), "{name}");
            store.sweep_archive().await.unwrap();
            assert_eq!(files(&place, thread), [""; 0], "{name}");
            continue;
        }
        let is_archived = store.info(thread).await.unwrap().archived.is_some();
        let expected = matches!(
            (point, side),
            (Point::ArchiveCommit, Side::After) | (Point::ArchiveReturn, Side::Before)
        );
        assert_eq!(is_archived, expected, "{name}");
        assert_eq!(exported(store.as_ref(), thread).await, before, "{name}");
        sweep().await;
        assert_eq!(files(&place, thread), [""; 0], "{name}");
        assert!(store.archive(thread, later()).await.unwrap(), "{name}");
        assert_eq!(files(&place, thread).len(), 1, "{name}");
        assert_eq!(exported(store.as_ref(), thread).await, before, "{name}");
        assert_eq!(files(&place, thread).len(), 1, "{name}: a copy of the database may need it");
        sweep().await;
        assert_eq!(files(&place, thread), [""; 0], "{name}");
    }
    database.close().await;
    store.close().await;
}

/// X4
#[tokio::test]
async fn a_killed_process_loses_and_leaves_nothing_on_sqlite() {
    if is_child().await {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("threads.db").display());
    nothing_is_lost_or_left("a_killed_process_loses_and_leaves_nothing_on_sqlite", &url).await;
}

/// X4
#[tokio::test]
async fn a_killed_process_loses_and_leaves_nothing_on_postgres() {
    if is_child().await {
        return;
    }
    let database = server().await.fresh().await;
    let test = "a_killed_process_loses_and_leaves_nothing_on_postgres";
    nothing_is_lost_or_left(test, &database.url).await;
}
