//! Crons: kept as the reference server shows them, and each time begun once.

use perihelion_database::{Database, query};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::behind::waiting;
use super::people::{ask, key};
use super::recorded::assert_shape;
use super::served::Served;
use super::{on_both, saying};

on_both!(
    crons_are_made_found_changed_and_deleted,
    a_time_that_passed_is_made_up_for_once_no_matter_who_finds_it,
    a_time_for_which_there_is_no_place_is_passed_over_and_leaves_no_thread,
    a_cron_pauses_when_its_key_is_revoked_or_its_user_disabled,
);

fn cron() -> Value {
    json!({
        "schedule": "0 0 1 1 *", "assistant_id": "swarm", "input": { "question": "hello" },
        "metadata": { "team": "blue" }, "on_run_completed": "keep",
    })
}

/// S2.12, X5
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
    // An end is set, and taken away by saying that there is none.
    let end = json!({ "end_time": "2099-01-01T00:00:00Z" });
    let (_, ends) = served.send(Method::PATCH, &place, &end).await;
    assert!(ends["end_time"].as_str().unwrap().starts_with("2099-01-01"), "{ends}");
    let (_, endless) = served.send(Method::PATCH, &place, &json!({ "end_time": null })).await;
    assert_eq!(
        (&endless["end_time"], &endless["timezone"]),
        (&Value::Null, &json!("Europe/Berlin"))
    );
    for (order, first) in [("asc", id), ("desc", of_thread["cron_id"].as_str().unwrap())] {
        let sorted = json!({ "sort_by": "created_at", "sort_order": order, "select": ["cron_id"] });
        let (_, found) = served.post("/runs/crons/search", &sorted).await;
        assert_eq!(found[0], json!({ "cron_id": first }), "{order}: {found}");
    }
    // Those that have no next time come last in either order.
    for order in ["asc", "desc"] {
        let sorted = json!({ "sort_by": "next_run_date", "sort_order": order });
        let (_, found) = served.post("/runs/crons/search", &sorted).await;
        assert_eq!(found[1]["cron_id"], id, "{order}: {found}");
    }
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
async fn a_time_that_passed_is_made_up_for_once_no_matter_who_finds_it(mut served: Served) {
    let (_, made) = served.post("/runs/crons", &cron()).await;
    let id: Uuid = made["cron_id"].as_str().unwrap().parse().unwrap();
    served.crash().await;
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
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

/// S3.04, X5
async fn a_time_for_which_there_is_no_place_is_passed_over_and_leaves_no_thread(served: Served) {
    let served = served.again_with(&[("PERIHELION_SERVE_MAX_RUNS", "1")]).await;
    let mut waits = saying("hello");
    waits["after_seconds"] = json!(3600);
    let (code, run) = served.post("/runs", &waits).await;
    assert_eq!(code, 200, "{run}");
    let (_, made) = served.post("/runs/crons", &cron()).await;
    make_due(&served, &made["cron_id"]).await;
    let next = made["next_run_date"].clone();
    served.until("/runs/crons/search", &json!({}), |crons| crons[0]["next_run_date"] == next).await;
    let (_, threads) = served.post("/threads/search", &json!({})).await;
    assert_eq!(threads.as_array().unwrap().len(), 1, "that of the run that waits: {threads}");
}

/// Has a cron be due.
pub async fn make_due(served: &Served, id: &Value) {
    let id: Uuid = id.as_str().unwrap().parse().unwrap();
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    let past = perihelion::clock::now() - chrono::TimeDelta::days(3);
    let back = query("UPDATE service_cron SET next_at = $1 WHERE id = $2");
    assert_eq!(database.execute(&back.bind(past).bind(id)).await.unwrap(), 1);
    database.close().await;
}

/// S3.04, S2.12
async fn a_cron_pauses_when_its_key_is_revoked_or_its_user_disabled(served: Served) {
    let manage = key(&served, &["boss", "--scopes", "read,run,manage"]).await;
    let ci = key(&served, &["ci"]).await;
    let anns = key(&served, &["anns", "--user", "ann"]).await;
    let [boss, ci, anns] = [&manage, &ci, &anns].map(|key| [("x-api-key", key.as_str())]);
    let mut made = Vec::new();
    for who in [&ci, &anns, &boss] {
        let (code, one) = ask(&served, "POST", "/runs/crons", who, Some(cron())).await;
        assert_eq!(code, 200, "{one}");
        assert_eq!(one.get("paused"), None);
        made.push(one["cron_id"].clone());
    }
    served.program(&["keys", "revoke", "ci"]).await;
    served.program_with_input(&["users", "add", "ann"], "a long password\n").await;
    served.program(&["users", "disable", "ann"]).await;
    for id in &made {
        make_due(&served, id).await;
    }
    let shown = loop {
        let (_, all) = ask(&served, "POST", "/runs/crons/search", &boss, Some(json!({}))).await;
        let all = all.as_array().unwrap().clone();
        let one = |id: &Value| all.iter().find(|one| one["cron_id"] == *id).unwrap().clone();
        let [first, second, third] = [&made[0], &made[1], &made[2]].map(one);
        let ran = third["next_run_date"].as_str().is_some_and(|next| {
            next.parse::<chrono::DateTime<chrono::Utc>>().unwrap() > perihelion::clock::now()
        });
        if first["enabled"] == false && second["enabled"] == false && ran {
            break [first, second];
        }
        perihelion::clock::sleep(std::time::Duration::from_millis(20)).await;
    };
    for (one, why) in shown.iter().zip(["the key was revoked", "the user was disabled"]) {
        assert!(one["paused"].as_str().unwrap().contains(why), "{one}");
        assert_eq!(one["next_run_date"], Value::Null);
    }
    let (_, threads) = ask(&served, "POST", "/threads/search", &boss, Some(json!({}))).await;
    assert_eq!(threads.as_array().unwrap().len(), 1, "only the cron of the key in force ran");
    // Anyone who switches it on again has it run in their own name.
    let place = format!("/runs/crons/{}", made[0].as_str().unwrap());
    let on = json!({ "enabled": true });
    let (code, on) = ask(&served, "PATCH", &place, &boss, Some(on)).await;
    assert_eq!((code, on.get("paused"), &on["user_id"]), (200, None, &json!("boss")));
}

/// S2.12
#[tokio::test]
async fn a_cron_that_is_deleted_during_a_change_stays_deleted() {
    let served = Served::postgres().await;
    let (_, made) = served.post("/runs/crons", &cron()).await;
    let id = made["cron_id"].as_str().unwrap();
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    let mut deleting = database.begin().await.unwrap();
    let delete = query("DELETE FROM service_cron WHERE id = $1").bind(id.parse::<Uuid>().unwrap());
    assert_eq!(deleting.execute(&delete).await.unwrap(), 1);
    let deleted = async {
        waiting(&database, 1).await;
        deleting.commit().await.unwrap();
    };
    let place = format!("/runs/crons/{id}");
    let change = json!({ "enabled": false });
    let (changed, ()) = tokio::join!(served.send(Method::PATCH, &place, &change), deleted);
    assert_eq!(changed.0, 404, "{}", changed.1);
    assert_eq!(served.post("/runs/crons/count", &json!({})).await.1, 0);
    database.close().await;
}
