//! Rows that a process cannot take, such as those of the demo, hide no others (X5).

use perihelion_database::{Database, query};
use serde_json::json;
use uuid::Uuid;

use super::served::Served;
use super::{on_both, saying};

on_both!(
    rows_of_others_hide_no_due_run_cron_or_request,
    a_run_begins_when_it_is_due_although_requests_for_approval_cannot_be_read,
);

/// More than two pages.
const MANY: usize = 150;

const THREAD: &str = "INSERT INTO thread (id, created_at, updated_at, graph, namespace, tenant) \
    VALUES ($1, $2, $2, 'swarm', '', 'demo')";

const RUN: &str = "INSERT INTO service_run (id, thread_id, assistant, tenant, status, multitask, kwargs, metadata, \
        temporary, attempt, due_at, created_at, updated_at) \
    VALUES ($1, $1, $1, 'demo', $3, 'enqueue', '{}', '{}', false, 0, $2, $2, $2)";

const CRON: &str = "INSERT INTO service_cron (id, tenant, assistant, schedule, payload, metadata, enabled, next_at, \
        created_at, updated_at) \
    VALUES ($1, 'demo', $1, '0 0 1 1 *', '{}', '{}', true, $2, $2, $2)";

/// X5, S2.12
async fn rows_of_others_hide_no_due_run_cron_or_request(mut served: Served) {
    let mut later = saying("hello");
    later["after_seconds"] = json!(3_600);
    let mut runs = Vec::new();
    for _ in 0..2 {
        let thread = served.thread().await;
        let (_, run) = served.post(&format!("/threads/{thread}/runs"), &later).await;
        runs.push((thread, run["run_id"].as_str().unwrap().to_owned()));
    }
    let mut cron = saying("hello");
    cron["schedule"] = json!("0 0 1 1 *");
    let (_, cron) = served.post("/runs/crons", &cron).await;
    served.crash().await;
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    let now = perihelion::clock::now();
    let past = now - chrono::TimeDelta::days(3);
    for number in 0..MANY {
        // Before all others in any order, and half of them under way.
        let id = Uuid::from_u128(number as u128 + 1);
        let status = if number % 2 == 0 { "pending" } else { "running" };
        database.execute(&query(THREAD).bind(id).bind(past)).await.unwrap();
        database.execute(&query(RUN).bind(id).bind(past).bind(status)).await.unwrap();
        database.execute(&query(CRON).bind(id).bind(past)).await.unwrap();
    }
    let id = |text: &str| text.parse::<Uuid>().unwrap();
    let due = "UPDATE service_run SET due_at = $1 WHERE id = $2";
    let lost = "UPDATE service_run SET status = 'running', attempt = 1, base_step = 0, first_event = 0, seen_at = $1 \
        WHERE id = $2";
    let next = "UPDATE service_cron SET next_at = $1 WHERE id = $2";
    let rows = [(due, &*runs[0].1), (lost, &*runs[1].1), (next, cron["cron_id"].as_str().unwrap())];
    for (statement, row) in rows {
        let moved = query(statement).bind(now).bind(id(row));
        assert_eq!(database.execute(&moved).await.unwrap(), 1);
    }
    database.close().await;
    served.start_again().await;
    for (thread, run) in &runs {
        let (_, values) = served.get(&format!("/threads/{thread}/runs/{run}/join")).await;
        assert_eq!(values["answer"], "Hello from the star.", "{values}");
    }
    let next = &cron["next_run_date"];
    served.until("/runs/crons/search", &json!({}), |all| all[0]["next_run_date"] == *next).await;
}

/// X5
async fn a_run_begins_when_it_is_due_although_requests_for_approval_cannot_be_read(served: Served) {
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    database
        .execute(&query("ALTER TABLE approval_request RENAME COLUMN expires_at TO away"))
        .await
        .unwrap();
    let thread = served.thread().await;
    let mut soon = saying("hello");
    soon["after_seconds"] = json!(1);
    let (_, run) = served.post(&format!("/threads/{thread}/runs"), &soon).await;
    let run = format!("/threads/{thread}/runs/{}", run["run_id"].as_str().unwrap());
    let (_, values) = served.get(&format!("{run}/join")).await;
    assert_eq!(values["answer"], "Hello from the star.", "{values}");
    database
        .execute(&query("ALTER TABLE approval_request RENAME COLUMN away TO expires_at"))
        .await
        .unwrap();
    database.close().await;
}
