//! Crons: kept as the reference server shows them, and each time begun once.

use perihelion_database::{Database, query};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::on_both;
use super::recorded::assert_shape;
use super::served::Served;

on_both!(
    crons_are_made_found_changed_and_deleted,
    a_time_that_passed_is_made_up_for_once_whoever_finds_it,
);

fn cron() -> Value {
    json!({
        "schedule": "0 0 1 1 *", "assistant_id": "swarm", "input": { "question": "hello" },
        "metadata": { "team": "blue" }, "on_run_completed": "keep",
    })
}

/// S2.12
async fn crons_are_made_found_changed_and_deleted(served: Served) {
    let (code, made) = served.post("/runs/crons", &cron()).await;
    assert_eq!(code, 200, "{made}");
    assert_shape("cron", &made);
    assert!(made["next_run_date"].as_str().unwrap().contains("-01-01T00:00:00"), "{made}");
    let id = made["cron_id"].as_str().unwrap();
    assert_eq!(made["payload"]["config"]["configurable"]["cron_id"], id);
    let thread = served.thread().await;
    let (_, of_thread) = served.post(&format!("/threads/{thread}/runs/crons"), &cron()).await;
    assert_eq!(of_thread["thread_id"], thread.as_str());
    let (_, found) = served.post("/runs/crons/search", &json!({ "thread_id": thread })).await;
    assert_eq!(found, json!([of_thread]));
    for (filter, count) in [
        (json!({}), 2),
        (json!({ "assistant_id": "swarm", "metadata": { "team": "blue" } }), 2),
        (json!({ "metadata": { "team": "red" } }), 0),
        (json!({ "enabled": false }), 0),
    ] {
        assert_eq!(served.post("/runs/crons/count", &filter).await.1, json!(count), "{filter}");
    }
    let place = format!("/runs/crons/{id}");
    let change = json!({ "timezone": "Europe/Berlin", "schedule": "30 7 * * MON-FRI" });
    let (code, changed) = served.send(Method::PATCH, &place, &change).await;
    assert_eq!(code, 200, "{changed}");
    assert_eq!(
        (&changed["timezone"], &changed["metadata"]["team"]),
        (&json!("Europe/Berlin"), &json!("blue"))
    );
    let (_, off) = served.send(Method::PATCH, &place, &json!({ "enabled": false })).await;
    assert_eq!((&off["enabled"], &off["next_run_date"]), (&json!(false), &Value::Null));
    for (field, wrong) in [
        ("schedule", json!("now and then")),
        ("schedule", json!("0 0 1 1 * 2027")),
        ("timezone", json!("Mars/Olympus")),
        ("assistant_id", json!("nobody")),
        ("input", json!({ "messages": [] })),
        ("command", json!({ "resume": true })),
    ] {
        let mut body = cron();
        body[field] = wrong;
        assert_eq!(served.post("/runs/crons", &body).await.0, 422, "{body}");
    }
    assert_eq!(served.send(Method::DELETE, &place, &json!({})).await.0, 204);
    assert_eq!(served.send(Method::DELETE, &place, &json!({})).await.0, 404);
}

/// X5
async fn a_time_that_passed_is_made_up_for_once_whoever_finds_it(mut served: Served) {
    let (_, made) = served.post("/runs/crons", &cron()).await;
    let id: Uuid = made["cron_id"].as_str().unwrap().parse().unwrap();
    served.crash().await;
    let database = Database::open(&served.database()).await.unwrap();
    let past = perihelion::clock::now() - chrono::TimeDelta::days(3);
    let back = query("UPDATE service_cron SET schedule = '0 * * * *', next_at = $1 WHERE id = $2");
    assert_eq!(database.execute(&back.bind(past).bind(id)).await.unwrap(), 1);
    database.close().await;
    served.start_again().await;
    let other = served.another().await;
    let now = perihelion::clock::now();
    served
        .until("/runs/crons/search", &json!({}), |crons| {
            let next: Option<chrono::DateTime<chrono::Utc>> =
                crons[0]["next_run_date"].as_str().and_then(|next| next.parse().ok());
            next.is_some_and(|next| next > now)
        })
        .await;
    let (_, threads) = served.post("/threads/search", &json!({})).await;
    let threads = threads.as_array().unwrap().clone();
    assert_eq!(threads.len(), 1, "{threads:?}");
    let thread = threads[0]["thread_id"].as_str().unwrap();
    let (_, runs) = served.get(&format!("/threads/{thread}/runs")).await;
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
    assert_eq!(runs[0]["metadata"]["cron_id"], id.to_string());
    let run = runs[0]["run_id"].as_str().unwrap();
    let (_, left) = served.get(&format!("/threads/{thread}/runs/{run}/join")).await;
    assert_eq!(left["answer"], "Hello from the star.");
    drop(other);
}
