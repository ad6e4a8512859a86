//! Statements of one process that write to one SQLite file at the same time.
#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

use std::path::{Path, PathBuf};

use perihelion_database::{Database, Error, query};
use sqlx::{Connection as _, Executor as _, SqliteConnection};
use tempfile::TempDir;
use tokio::task::JoinHandle;

struct File {
    directory: TempDir,
    /// Opened twice, as a program does for its rooms.
    rooms: [Database; 2],
}

impl File {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("one.db").to_str().unwrap().to_owned();
        let rooms = [Database::open(&path).await.unwrap(), Database::open(&path).await.unwrap()];
        let table = query("CREATE TABLE kept (n INTEGER PRIMARY KEY, text TEXT)");
        rooms[0].execute(&table).await.unwrap();
        Self { directory, rooms }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("one.db")
    }

    /// Begins to keep numbers while somebody else writes, from both rooms in turn.
    async fn keep(
        &self,
        numbers: impl IntoIterator<Item = i64>,
        text: &str,
    ) -> Vec<JoinHandle<Result<u64, Error>>> {
        let open = self.rooms[1].begin().await.unwrap();
        let begun = numbers.into_iter().map(|number| {
            let room = self.rooms[usize::from(number % 2 == 0)].clone();
            let insert = query("INSERT INTO kept (n, text) VALUES (?, ?)");
            let insert = insert.bind(number).bind(text.to_owned());
            tokio::spawn(async move { room.execute(&insert).await })
        });
        let begun = begun.collect();
        // On a runtime of one thread all of them come as far as they can.
        tokio::task::yield_now().await;
        open.commit().await.unwrap();
        begun
    }

    async fn kept(&self) -> Vec<i64> {
        let rows = self.rooms[0].fetch_all(&query("SELECT n FROM kept ORDER BY n")).await.unwrap();
        rows.iter().map(|row| row.get(0).unwrap()).collect()
    }
}

/// Counts the transactions in a file's write-ahead log: the frames that end one say how long the database is then.
///
/// The form is that of <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>.
fn transactions(path: &Path) -> usize {
    let log = std::fs::read(format!("{}-wal", path.display())).unwrap();
    let (header, frames) = log.split_at(32);
    let page = u32::from_be_bytes(header[8..12].try_into().unwrap()) as usize;
    let of_this_log = frames.chunks(24 + page).filter(|frame| frame[8..16] == header[16..24]);
    of_this_log.filter(|frame| frame[4..8] != [0; 4]).count()
}

/// X1
#[tokio::test]
async fn statements_that_wait_for_each_other_share_a_flush() {
    let file = File::new().await;
    let before = transactions(&file.path());
    for begun in file.keep(0..50, "").await {
        assert_eq!(begun.await.unwrap().unwrap(), 1);
    }
    assert_eq!(file.kept().await, (0..50).collect::<Vec<_>>());
    let after = transactions(&file.path());
    assert!(after - before <= 5, "{} transactions for 50 statements", after - before);
}

/// X1
#[tokio::test]
async fn a_refused_write_does_not_fail_the_other_writes_of_its_group() {
    let file = File::new().await;
    let mut numbers: Vec<i64> = (0..20).collect();
    numbers[7] = 3;
    for (index, begun) in file.keep(numbers, "").await.into_iter().enumerate() {
        assert_eq!(begun.await.unwrap().is_ok(), index != 7, "{index}");
    }
    assert_eq!(file.kept().await, (0..20).filter(|n| *n != 7).collect::<Vec<_>>());
}

/// X1: who is refused looks for the reason.
#[tokio::test]
async fn what_refused_a_write_of_a_group_is_visible_to_the_refused_one() {
    let file = File::new().await;
    let mut begun = file.keep([3, 3], "").await;
    assert!(begun.pop().unwrap().await.unwrap().is_err());
    assert_eq!(file.kept().await, [3]);
}

/// X1
#[tokio::test]
async fn a_full_disk_is_a_distinct_error_and_earlier_data_survives() {
    let file = File::new().await;
    // Some of them fit, not all.
    file.rooms[0].execute(&query("PRAGMA max_page_count = 40")).await.unwrap();
    let mut acknowledged = Vec::new();
    for (number, begun) in (0_i64..).zip(file.keep(0..20, &"x".repeat(30_000)).await) {
        match begun.await.unwrap() {
            Ok(_) => acknowledged.push(number),
            Err(error) => assert!(matches!(error, Error::Full { .. }), "{error:?}"),
        }
    }
    assert!(!acknowledged.is_empty() && acknowledged.len() < 20, "{acknowledged:?}");
    assert_eq!(file.kept().await, acknowledged);
    let one = query("DELETE FROM kept");
    assert_eq!(file.rooms[1].execute(&one).await.unwrap(), acknowledged.len() as u64);
}

/// X1
#[tokio::test]
async fn callers_that_stop_waiting_at_any_moment_do_not_affect_other_callers() {
    for moment in 0..40 {
        let file = File::new().await;
        let begun = file.keep(0..10, "").await;
        for _ in 0..moment {
            tokio::task::yield_now().await;
        }
        // All but two are given up, wherever they are.
        for one in &begun[1..9] {
            one.abort();
        }
        let mut acknowledged = Vec::new();
        for (number, one) in (0_i64..).zip(begun) {
            match one.await {
                Ok(done) => {
                    done.unwrap();
                    acknowledged.push(number);
                }
                Err(error) => assert!(error.is_cancelled(), "{error}"),
            }
        }
        let kept = file.kept().await;
        assert!(acknowledged.contains(&0) && acknowledged.contains(&9), "{acknowledged:?}");
        assert!(acknowledged.iter().all(|number| kept.contains(number)), "{kept:?}");
        // Nothing is left open behind them.
        let insert = query("INSERT INTO kept (n) VALUES (100)");
        for (room, changed) in file.rooms.iter().zip([Ok(1), Err(())]) {
            assert_eq!(room.execute(&insert).await.map_err(|_| ()), changed);
        }
    }
}

/// X1
#[tokio::test]
async fn when_one_user_of_the_file_closes_it_other_users_continue() {
    let file = File::new().await;
    file.rooms[0].close().await;
    let insert = query("INSERT INTO kept (n) VALUES (1)");
    assert!(matches!(file.rooms[0].execute(&insert).await, Err(Error::Failed(_))));
    assert_eq!(file.rooms[1].execute(&insert).await.unwrap(), 1);
    file.rooms[1].close().await;
    let again = Database::open(file.path().to_str().unwrap()).await.unwrap();
    let rows = again.fetch_all(&query("SELECT n FROM kept")).await.unwrap();
    assert_eq!(rows.len(), 1);
}

/// X1
#[tokio::test]
async fn an_unfinished_write_of_another_process_is_a_distinct_error() {
    let file = File::new().await;
    file.rooms[0].execute(&query("PRAGMA busy_timeout = 20")).await.unwrap();
    let url = format!("sqlite:{}", file.path().display());
    let mut another = SqliteConnection::connect(&url).await.unwrap();
    another.execute("BEGIN IMMEDIATE").await.unwrap();
    let insert = query("INSERT INTO kept (n) VALUES (1)");
    let alone = file.rooms[0].execute(&insert).await.unwrap_err();
    let within = file.rooms[1].begin().await.err().unwrap();
    for error in [alone, within] {
        assert!(matches!(error, Error::Locked { .. }) && error.is_passing(), "{error:?}");
        assert!(error.to_string().contains(&url), "{error}");
    }
    another.execute("ROLLBACK").await.unwrap();
    assert_eq!(file.rooms[1].execute(&insert).await.unwrap(), 1);
}
