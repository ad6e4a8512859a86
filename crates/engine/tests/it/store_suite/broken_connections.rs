//! What becomes of a write when the connection to Postgres breaks in the middle of it.
//!
//! A proxy stands between store and server and cuts at the moments that matter: before the statement
//! arrives, and after it was executed but before the reply is through.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU8, Ordering},
};

use perihelion_engine::checkpoint::{
    Claim, EffectSettlement, EffectStatus, Error, Fence, PostgresStore, Store,
};
use serde_json::json;
use sqlx::PgConnection;

use super::{
    stores::{self, connect},
    writer::{Writer, encoded},
};
use perihelion_test_database::TestDatabase;
use perihelion_test_database::postgres::server;
use perihelion_test_database::proxy::{self, Piece, Way};

/// What the proxy does to the next statement.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Cut {
    Nothing = 0,
    BeforeTheStatement = 1,
    BeforeTheReply = 2,
}

pub(super) struct Proxy {
    cut: Arc<AtomicU8>,
    pub(super) url: String,
}

impl Proxy {
    pub(super) async fn before(url: &str) -> Self {
        let cut = Arc::new(AtomicU8::new(0));
        let armed = Arc::clone(&cut);
        let cuts = move |piece: Piece| {
            let cut = match piece.way {
                Way::Statement => Cut::BeforeTheStatement,
                Way::Reply => Cut::BeforeTheReply,
            };
            let cut = cut as u8;
            let nothing = Cut::Nothing as u8;
            armed.compare_exchange(cut, nothing, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        let url = proxy::before(url, cuts).await;
        Self { cut, url }
    }

    pub(super) fn arm(&self, cut: Cut) {
        self.cut.store(cut as u8, Ordering::SeqCst);
    }

    pub(super) fn has_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst) == Cut::Nothing as u8
    }
}

/// A writer with one step behind it, through a proxy, on a connection that knows the commit statement.
async fn behind_a_proxy() -> (Proxy, Writer) {
    let on = stores::postgres().await;
    let proxy = Proxy::before(on.url.as_deref().unwrap()).await;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&proxy.url).await.unwrap());
    let writer = Writer::with_steps(&store, 1).await;
    (proxy, writer)
}

async fn assert_whole(writer: &Writer, head: u64) {
    let steps = writer.store.load(writer.thread, None).await.unwrap().steps;
    assert_eq!(
        steps.iter().map(|step| step.seq).collect::<Vec<_>>(),
        (1..=head).collect::<Vec<_>>()
    );
    assert!(steps.iter().all(|step| step.run == writer.run));
}

/// X1
#[tokio::test]
async fn a_commit_is_one_round_trip() {
    let on = stores::postgres().await;
    let pieces: Arc<Mutex<Vec<Piece>>> = Arc::default();
    let seen = Arc::clone(&pieces);
    let cuts = move |piece| {
        seen.lock().unwrap().push(piece);
        false
    };
    let url = proxy::before(on.url.as_deref().unwrap(), cuts).await;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&url).await.unwrap());
    let mut writer = Writer::with_steps(&store, 1).await;
    let before = pieces.lock().unwrap().len();
    writer.steps(3).await;
    let pieces = pieces.lock().unwrap();
    let first = pieces[before].passed;
    let commits = &pieces[before..];
    assert!(commits.iter().all(|piece| piece.is_commit), "{commits:?}");
    assert!(commits.iter().map(|piece| piece.passed).eq(first..first + 6), "{commits:?}");
    let replies = commits.iter().filter(|piece| piece.way == Way::Reply);
    assert_eq!(replies.count(), 3, "{commits:?}");
}

#[tokio::test]
async fn a_commit_whose_reply_was_lost_is_found_committed() {
    let (proxy, mut writer) = behind_a_proxy().await;
    proxy.arm(Cut::BeforeTheReply);
    writer.steps(1).await;
    assert!(proxy.has_cut());
    writer.steps(1).await;
    assert_whole(&writer, 3).await;
}

#[tokio::test]
async fn a_commit_that_never_arrived_is_sent_again() {
    let (proxy, mut writer) = behind_a_proxy().await;
    proxy.arm(Cut::BeforeTheStatement);
    writer.steps(1).await;
    assert!(proxy.has_cut());
    writer.steps(1).await;
    assert_whole(&writer, 3).await;
}

#[tokio::test]
async fn a_writer_replaced_while_its_connection_was_down_is_fenced() {
    for cut in [Cut::BeforeTheStatement, Cut::BeforeTheReply] {
        let (proxy, mut zombie) = behind_a_proxy().await;
        let direct = stores::postgres().await;
        let heir = Writer::claim(&direct.store, zombie.thread).await;
        proxy.arm(cut);
        let commit = zombie.next(encoded(&json!("late")));
        match zombie.commit(&commit).await {
            Err(Error::Fenced { current, .. }) => assert_eq!(current, heir.fence),
            other => panic!("{other:?}"),
        }
        assert!(proxy.has_cut());
        assert_eq!(direct.store.info(zombie.thread).await.unwrap().head, 1);
    }
}

#[tokio::test]
async fn a_foreign_step_in_the_same_place_is_not_mistaken_for_the_callers_step() {
    let (proxy, mut slow) = behind_a_proxy().await;
    let mut fast = Writer::claimed(&slow.store, slow.thread, slow.fence, slow.head);
    fast.steps(1).await;
    proxy.arm(Cut::BeforeTheReply);
    let commit = slow.next(encoded(&json!("mine")));
    let refused = slow.commit(&commit).await;
    assert!(matches!(refused, Err(Error::Conflict { head: 2, .. })), "{refused:?}");
}

#[tokio::test]
async fn journal_writes_survive_a_lost_reply_and_are_stored_once() {
    let (proxy, writer) = behind_a_proxy().await;
    let store = &writer.store;
    let thread = writer.thread;
    let fence = writer.fence;
    let call = writer.tool_call(0);
    let end = EffectSettlement {
        step: call.step,
        task: call.task,
        key: call.key.clone(),
        status: EffectStatus::Done,
        outcome: Some(encoded(&json!("ok"))),
        attempt: 1,
    };
    for cut in [Cut::BeforeTheReply, Cut::BeforeTheStatement] {
        for write in 0..5 {
            proxy.arm(cut);
            match write {
                0 => {
                    assert_eq!(
                        store
                            .begin_run(Fence::new(thread, fence), writer.run, false)
                            .await
                            .unwrap()
                            .number,
                        1
                    )
                }
                1 => store
                    .save_pending(Fence::new(thread, fence), &writer.pending(0), &[])
                    .await
                    .unwrap(),
                2 => store
                    .record_effects(Fence::new(thread, fence), std::slice::from_ref(&call))
                    .await
                    .unwrap(),
                3 => store.settle_effect(Fence::new(thread, fence), &end).await.unwrap(),
                _ => store.put_snapshot(thread, &writer.snapshot(1)).await.unwrap(),
            }
            assert!(proxy.has_cut());
        }
    }
    assert_eq!(store.runs(thread).await.unwrap().len(), 1);
    assert_eq!(store.load(thread, None).await.unwrap().pending.len(), 1);
    let effects = store.effects(thread, None).await.unwrap();
    assert_eq!(effects.len(), 1);
    assert_eq!(effects[0].outcome, end.outcome);
}

#[tokio::test]
async fn every_method_works_after_the_server_closed_all_connections() {
    let database = server().await.fresh().await;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&database.url).await.unwrap());
    let mut writer = Writer::with_steps(&store, 1).await;
    for round in 0..6 {
        end_all_connections(&database).await;
        match round {
            0 => writer.steps(1).await,
            1 => drop(store.info(writer.thread).await.unwrap()),
            2 => drop(
                store
                    .claim(Claim::new(writer.thread, "b", super::writer::TTL).forced())
                    .await
                    .unwrap(),
            ),
            3 => drop(store.create(super::writer::new_thread()).await.unwrap()),
            4 => drop(store.export(writer.thread).await.unwrap()),
            _ => store.delete(writer.thread).await.unwrap(),
        }
    }
    store.close().await;
}

#[tokio::test]
async fn an_abandoned_call_leaves_the_store_usable() {
    let on = stores::postgres().await;
    let writer = Writer::new(&on.store).await;
    let mut other = connect(on.url.as_deref().unwrap()).await;
    sqlx::raw_sql("BEGIN").execute(&mut other).await.unwrap();
    sqlx::query("SELECT 1 FROM thread WHERE id = $1 FOR UPDATE")
        .bind(writer.thread.0)
        .execute(&mut other)
        .await
        .unwrap();
    let commit = writer.next(encoded(&json!([])));
    let mut watcher = connect(on.url.as_deref().unwrap()).await;
    tokio::select! {
        done = on.store.commit(&commit) => panic!("the row is locked, and yet: {done:?}"),
        () = until_somebody_waits_for(&mut other, &mut watcher) => {}
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    // Whether it still took effect is open, as with a crash; the store continues either way.
    let mut heir = Writer::claim(&on.store, writer.thread).await;
    heir.steps(2).await;
    let steps = on.store.load(writer.thread, None).await.unwrap().steps;
    assert_eq!(steps.len() as u64, heir.head);
}

/// Returns once another session waits for a lock that `holder` has.
pub(super) async fn until_somebody_waits_for(
    holder: &mut PgConnection,
    watcher: &mut PgConnection,
) {
    let holder: i32 =
        sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(holder).await.unwrap();
    let waits =
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid)))";
    while !sqlx::query_scalar::<_, bool>(waits).bind(holder).fetch_one(&mut *watcher).await.unwrap()
    {
        tokio::task::yield_now().await;
    }
}

/// After a failover, an address can lead to the old writer for a while, which only reads.
#[tokio::test]
async fn a_connection_to_a_server_that_only_reads_is_not_used_again() {
    let database = server().await.fresh().await;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&database.url).await.unwrap());
    let mut writer = Writer::with_steps(&store, 1).await;
    let alter = async |change: &str| {
        let alter = sqlx::AssertSqlSafe(format!(
            "BEGIN READ WRITE; ALTER DATABASE {} {change}; COMMIT",
            database.name
        ));
        sqlx::raw_sql(alter).execute(&mut database.connect().await).await.unwrap();
    };
    alter("SET default_transaction_read_only = on").await;
    end_all_connections(&database).await;
    let commit = writer.next(encoded(&json!("soon")));
    let refused = [
        writer.store.commit(&commit).await.err(),
        store.create(super::writer::new_thread()).await.err(),
        store.put_snapshot(writer.thread, &writer.snapshot(1)).await.err(),
        store.delete(writer.thread).await.err(),
    ];
    for refused in refused {
        let error = refused.unwrap();
        assert!(error.is_passing() && error.to_string().contains("read-only"), "{error}");
    }
    assert_eq!(store.info(writer.thread).await.unwrap().head, 1);
    alter("RESET default_transaction_read_only").await;
    writer.commit(&commit).await.unwrap();
    assert_whole(&writer, 2).await;
    store.close().await;
}

async fn end_all_connections(database: &TestDatabase) {
    sqlx::query(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .execute(&mut database.connect().await)
    .await
    .unwrap();
}
