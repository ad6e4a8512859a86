//! How runs end, on SQLite and Postgres.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use chrono::TimeDelta;
use perihelion_database::{Database, query};
use perihelion_service_rows::{Begin, Cancel, Ended, Kept, NewDelivery, NewRun, RunStatus};
use perihelion_test_database::TestDatabase;
use uuid::Uuid;

mod support;
use support::{now, run};

/// Runs a test on both databases; Postgres where `TEST_DATABASE_URL` names a server.
async fn on_both<F: Future<Output = ()>>(test: impl Fn(Kept, Uuid) -> F) {
    let server = TestDatabase::make().await;
    let urls = ["memory:"].into_iter().chain(server.iter().map(|server| server.url.as_str()));
    for url in urls {
        let database = Database::open(url).await.unwrap();
        let thread = Uuid::now_v7();
        let insert = query(
            "INSERT INTO thread (id, created_at, updated_at, graph, namespace, tenant) \
             VALUES ($1, $2, $2, 'swarm', '', 'default')",
        );
        let insert = insert.bind(thread).bind(now());
        database.of_tenant("default").execute(&insert).await.unwrap();
        test(Kept::new(database.clone(), "default"), thread).await;
        database.close().await;
    }
}

fn begin(owner: &str) -> Begin<'_> {
    Begin { owner, now: now() }
}

/// X5: what an earlier process did of it is rolled back when it begins.
#[tokio::test]
async fn a_rollback_of_a_run_that_was_taken_over_waits_for_its_process() {
    on_both(|kept, thread| async move {
        let one = kept.add_run(&run(thread), begin("one")).await.unwrap().unwrap();
        kept.put_back(one.thread, one.id, "one", now(), TimeDelta::zero()).await.unwrap();
        assert!(kept.active_run(thread).await.unwrap().is_none());
        let ended = kept.ask_to_cancel(one.thread, one.id, Cancel::Rollback, now()).await.unwrap();
        assert_eq!(ended, Some(RunStatus::Pending), "no process has done anything of it");
        assert_eq!(kept.run_status(thread, one.id).await.unwrap(), Some(RunStatus::Interrupted));

        let two = kept.add_run(&run(thread), begin("one")).await.unwrap().unwrap();
        assert!(kept.take_over(&two, TimeDelta::zero(), begin("two")).await.unwrap());
        assert!(kept.put_back(two.thread, two.id, "two", now(), TimeDelta::zero()).await.unwrap());
        // A worker that has the thread continues as it asked.
        assert_eq!(kept.active_run(thread).await.unwrap().map(|run| run.id), Some(two.id));
        for how in [Cancel::Rollback, Cancel::Interrupt] {
            let left = kept.ask_to_cancel(two.thread, two.id, how, now()).await.unwrap();
            assert_eq!(left, Some(RunStatus::Running), "{how:?}");
        }
        let waits = kept.find_run(two.id).await.unwrap().unwrap();
        assert_eq!((waits.status, waits.cancel), (RunStatus::Pending, Some(Cancel::Rollback)));
        let begun = kept.begin_run(&waits, begin("two")).await.unwrap().unwrap();
        assert_eq!((begun.attempt, begun.cancel), (3, Some(Cancel::Rollback)));
        assert!(!kept.put_back(two.thread, two.id, "two", now(), TimeDelta::zero()).await.unwrap());
        let ended = Ended::new(RunStatus::Interrupted);
        assert!(kept.end_run(two.thread, two.id, ended, now()).await.unwrap().is_some());
    })
    .await;
}

/// X5
#[tokio::test]
async fn a_thread_of_one_run_stays_until_its_newest_run_has_ended_for_a_while() {
    on_both(|kept, thread| async move {
        let brief = NewRun { temporary: true, ..run(thread) };
        kept.add_run(&brief, begin("one")).await.unwrap();
        kept.end_run(brief.thread, brief.id, Ended::new(RunStatus::Success), now()).await.unwrap();
        let soon = now() + TimeDelta::seconds(1);
        let gone = async || kept.threads_of_one_run(soon, 9, 0).await.unwrap().len();
        assert_eq!(gone().await, 1);
        let second = run(thread);
        let webhook = NewDelivery::webhook("http://h.test".to_owned());
        kept.add_delivery(second.id, &webhook, now()).await.unwrap();
        kept.add_run(&second, begin("one")).await.unwrap().unwrap();
        assert_eq!(gone().await, 0, "a second run is under way");
        let later = now() + TimeDelta::seconds(2);
        kept.end_run(second.thread, second.id, Ended::new(RunStatus::Success), later)
            .await
            .unwrap();
        assert_eq!(gone().await, 0, "it has ended just now");
        let even_later = later + TimeDelta::seconds(1);
        assert!(kept.threads_of_one_run(even_later, 9, 0).await.unwrap().is_empty(), "unsent");
        let due = kept.due_deliveries(even_later, &[], 9).await.unwrap();
        kept.delivered(due[0].id).await.unwrap();
        assert_eq!(kept.threads_of_one_run(even_later, 9, 0).await.unwrap().len(), 1);
    })
    .await;
}
