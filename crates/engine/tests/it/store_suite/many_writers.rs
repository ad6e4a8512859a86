//! Many threads of one process commit to Postgres at the same time and share statements.
//!
//! Two commits wait for rows that another session holds, and so keep the ways to commit for a moment: what
//! comes meanwhile collects.

use std::sync::Arc;

use perihelion_engine::checkpoint::{Commit, Error, PostgresStore, Store};
use serde_json::json;
use sqlx::PgConnection;
use tokio::task::JoinHandle;

use super::{
    broken_connections::{Cut, Proxy, until_somebody_waits_for},
    stores::{self, Fixture, connect},
    writer::{Writer, encoded},
};

/// Another session, and the writers whose threads' rows it holds.
struct Locked {
    session: PgConnection,
    writers: Vec<Writer>,
}

impl Locked {
    async fn rows(on: &Fixture, count: usize) -> Self {
        let mut session = connect(on.url.as_deref().unwrap()).await;
        sqlx::raw_sql("BEGIN").execute(&mut session).await.unwrap();
        let mut writers = Vec::new();
        for _ in 0..count {
            let writer = Writer::new(&on.store).await;
            sqlx::query("SELECT 1 FROM thread WHERE id = $1 FOR UPDATE")
                .bind(writer.thread.0)
                .execute(&mut session)
                .await
                .unwrap();
            writers.push(writer);
        }
        Self { session, writers }
    }

    async fn let_go(mut self) {
        sqlx::raw_sql("ROLLBACK").execute(&mut self.session).await.unwrap();
    }
}

type Committing = JoinHandle<(Commit, Result<(), Error>)>;

/// Commits the next step in a task of its own.
fn committing(writer: &Writer) -> Committing {
    let store = Arc::clone(&writer.store);
    let commit = writer.next(encoded(&json!([])));
    tokio::spawn(async move {
        let done = store.commit(&commit).await;
        (commit, done)
    })
}

async fn assert_committed(on: &Fixture, committing: Committing) {
    let (commit, done) = committing.await.unwrap();
    done.unwrap();
    let steps = on.store.load(commit.thread, None).await.unwrap().steps;
    assert_eq!(steps.last().map(|step| step.hash), Some(commit.step.hash));
    assert_eq!(steps.len() as u64, commit.step.seq);
}

async fn writers(store: &Arc<dyn Store>, count: usize) -> Vec<Writer> {
    let making = (0..count).map(|_| Writer::new(store));
    futures::future::join_all(making).await
}

#[tokio::test]
async fn commits_that_wait_for_a_locked_row_delay_no_other_thread() {
    let on = stores::postgres().await;
    let mut locked = Locked::rows(&on, 5).await;
    let waiting: Vec<_> = locked.writers.iter().map(committing).collect();
    let mut watcher = connect(on.url.as_deref().unwrap()).await;
    until_somebody_waits_for(&mut locked.session, &mut watcher).await;
    let free = writers(&on.store, 30).await;
    for done in free.iter().map(committing).collect::<Vec<_>>() {
        assert_committed(&on, done).await;
    }
    assert!(waiting.iter().all(|waits| !waits.is_finished()));
    locked.let_go().await;
    for done in waiting {
        assert_committed(&on, done).await;
    }
    on.store.close().await;
}

#[tokio::test]
async fn of_commits_that_share_a_statement_each_learns_its_own_fate() {
    let on = stores::postgres().await;
    let all_writers = writers(&on.store, 12).await;
    let locked = Locked::rows(&on, 2).await;
    let waiting: Vec<_> = locked.writers.iter().map(committing).collect();
    // Each third lost its lease, each third is a step behind.
    let mut reported = Vec::new();
    for (at, writer) in all_writers.iter().enumerate() {
        match at % 3 {
            0 => drop(Writer::claim(&on.store, writer.thread).await),
            1 => {
                let mut ahead = Writer::claimed(&on.store, writer.thread, writer.fence, 0);
                ahead.steps(1).await;
            }
            _ => {}
        }
        reported.push(committing(writer));
    }
    // A second one of the last writer, which is free to commit: one step, and one who is told of it.
    let twin = committing(&all_writers[11]);
    locked.let_go().await;
    let mut won = 0;
    for (at, committing) in reported.into_iter().enumerate() {
        let (_, done) = committing.await.unwrap();
        if at == 11 {
            won += u32::from(done.is_ok());
            continue;
        }
        match at % 3 {
            0 => assert!(matches!(done, Err(Error::Fenced { .. })), "{done:?}"),
            1 => assert!(matches!(done, Err(Error::Conflict { head: 1, .. })), "{done:?}"),
            _ => done.unwrap(),
        }
    }
    won += u32::from(twin.await.unwrap().1.is_ok());
    assert_eq!(won, 1, "two writers were told that they wrote the same step");
    for (at, writer) in all_writers.iter().enumerate() {
        let steps = on.store.load(writer.thread, None).await.unwrap().steps.len();
        assert_eq!(steps, usize::from(at % 3 != 0), "thread {at}");
    }
    for done in waiting {
        assert_committed(&on, done).await;
    }
    on.store.close().await;
}

#[tokio::test]
async fn a_statement_that_many_shared_is_settled_for_each_when_its_connection_breaks() {
    let on = stores::postgres().await;
    let proxy = Proxy::before(on.url.as_deref().unwrap()).await;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&proxy.url).await.unwrap());
    let mut all_writers = writers(&store, 24).await;
    for cut in [Cut::Nothing, Cut::BeforeTheReply, Cut::BeforeTheStatement] {
        proxy.arm(cut);
        let reported: Vec<_> = all_writers.iter().map(committing).collect();
        for (writer, committing) in all_writers.iter_mut().zip(reported) {
            let (commit, done) = committing.await.unwrap();
            done.unwrap();
            (writer.head, writer.hash) = (commit.step.seq, commit.step.hash);
        }
        assert!(proxy.has_cut());
    }
    for writer in &all_writers {
        let steps = on.store.load(writer.thread, None).await.unwrap().steps;
        assert_eq!(steps.iter().map(|step| step.seq).collect::<Vec<_>>(), [1, 2, 3]);
    }
    store.close().await;
}
