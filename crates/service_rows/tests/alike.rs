//! What both databases keep and find alike.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use chrono::TimeDelta;
use perihelion_service_rows::{Begin, Cron, Ended, ItemFilter, Kept, NewRun, RunStatus};
use serde_json::{Value, json};
use uuid::Uuid;

#[path = "support/databases.rs"]
mod databases;
#[path = "support/items.rs"]
mod items;
mod support;
use databases::{databases, thread_in};
use items::{assistant, item};
use support::{now, run};

fn path(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn both_databases_compare_values_of_one_type_alone() {
    let there = json!({
        "n": 5, "half": 0.5, "t": "B", "yes": true, "none": null, "o": { "b": 2, "a": [1, { "x": "y" }] }, "l": [2, 1],
    });
    for (database, _place, _server) in databases().await {
        let kept = Kept::new(database, "default");
        kept.put_item(&item(&["a"], "k", there.clone())).await.unwrap();
        for (wanted, is_found) in [
            (json!({ "n": { "$gt": 4.5, "$lte": 5 } }), true),
            (json!({ "n": { "$gt": 5 } }), false),
            (json!({ "half": { "$lt": 1 } }), true),
            (json!({ "t": { "$gt": 5 } }), false),
            (json!({ "t": { "$lt": 5 } }), false),
            (json!({ "n": { "$lt": "9" } }), false),
            // By bytes: all capital letters come before all small ones.
            (json!({ "t": { "$lt": "a" } }), true),
            (json!({ "t": { "$gte": "B" } }), true),
            (json!({ "yes": { "$gt": 0 } }), false),
            (json!({ "yes": { "$gt": false } }), false),
            (json!({ "none": { "$lte": null } }), false),
            (json!({ "missing": { "$lt": 1 } }), false),
            (json!({ "n": { "$eq": 5.0 } }), true),
            (json!({ "n": { "$eq": "5" } }), false),
            (json!({ "yes": { "$eq": true } }), true),
            (json!({ "yes": { "$eq": 1 } }), false),
            (json!({ "yes": { "$ne": 1 } }), true),
            (json!({ "none": { "$eq": null } }), true),
            (json!({ "missing": { "$eq": null } }), false),
            (json!({ "missing": { "$ne": 1 } }), true),
            (json!({ "t": { "$ne": "B" } }), false),
            (json!({ "o": { "$eq": { "a": [1.0, { "x": "y" }], "b": 2 } } }), true),
            (json!({ "o": { "$eq": { "b": 2 } } }), false),
            (json!({ "o": { "$ne": { "b": 2, "a": [1, { "x": "z" }] } } }), true),
            (json!({ "l": { "$eq": [2, 1] } }), true),
            (json!({ "l": { "$eq": [1, 2] } }), false),
            (json!({ "l": { "$eq": [2, 1, 1] } }), false),
            (json!({ "l": { "$eq": {} } }), false),
            (json!({ "t": { "$eq": ["B"] } }), false),
        ] {
            let filter =
                ItemFilter { filter: Some(wanted.clone()), limit: 9, ..Default::default() };
            let found = kept.items(&filter, now()).await.unwrap();
            assert_eq!(found.len(), usize::from(is_found), "{wanted}");
        }
    }
}

#[tokio::test]
async fn both_databases_list_namespaces_below_a_path_page_by_page() {
    for (database, _place, _server) in databases().await {
        let kept = Kept::new(database, "default");
        for names in [&["zones", "eu"][..], &["b"], &["a", "2"], &["a"], &["ab"], &["a", "1", "x"]]
        {
            kept.put_item(&item(names, "k", json!({}))).await.unwrap();
        }
        let below = path(&["a"]);
        let first = kept.namespaces(&below, &[], 2, now()).await.unwrap();
        assert_eq!(first, [path(&["a"]), path(&["a", "1", "x"])]);
        let second = kept.namespaces(&below, &first[1], 2, now()).await.unwrap();
        assert_eq!(second, [path(&["a", "2"])]);
        let rest = kept.namespaces(&[], &path(&["b"]), 9, now()).await.unwrap();
        assert_eq!(rest, [path(&["zones", "eu"])]);
    }
}

/// A prompt that a node makes of its input is the same on both, and so is the key of a cache.
#[tokio::test]
async fn both_databases_keep_a_request_as_it_was_written() {
    let asked = json!({ "input": { "z": 1, "a": 1e16, "m": 2.50 } });
    let written = asked.to_string();
    let as_kept = |kept: &Value| assert_eq!(kept.to_string(), written);
    for (database, _place, _server) in databases().await {
        let thread = thread_in(&database).await;
        let kept = Kept::new(database, "default");
        let new = NewRun { kwargs: asked.clone(), ..run(thread) };
        let begin = Begin { owner: "a", now: now() };
        as_kept(&kept.add_run(&new, begin).await.unwrap().unwrap().kwargs);
        let mut end = Ended::new(RunStatus::Success);
        assert!(kept.end_run(new.thread, new.id, end.clone(), now()).await.unwrap().is_some());
        as_kept(&kept.run(thread, new.id).await.unwrap().unwrap().kwargs);
        let other = run(thread);
        kept.add_run(&other, begin).await.unwrap().unwrap();
        end.kwargs = Some(&asked);
        assert!(kept.end_run(other.thread, other.id, end, now()).await.unwrap().is_some());
        as_kept(&kept.run(thread, other.id).await.unwrap().unwrap().kwargs);

        let made = assistant();
        let cron = Cron {
            id: Uuid::now_v7(),
            tenant: "default".to_owned(),
            assistant: made.id,
            thread: None,
            schedule: "0 * * * *".to_owned(),
            timezone: None,
            keeps_thread: false,
            user: String::new(),
            maker: None,
            paused: None,
            payload: asked.clone(),
            work: asked.clone(),
            metadata: json!({}),
            enabled: true,
            next_at: Some(now() + TimeDelta::hours(1)),
            end_at: None,
            created_at: now(),
            updated_at: now(),
        };
        for is_new in [true, false] {
            assert!(kept.put_cron(&cron, is_new).await.unwrap());
            let found = kept.cron(cron.id).await.unwrap().unwrap();
            as_kept(&found.payload);
            as_kept(&found.work);
        }
    }
}
