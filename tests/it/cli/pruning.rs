//! Retention: what goes, what stays, and who says so.

use std::time::Duration;

use perihelion::checkpoint::{Claim, Leases as _, SqliteStore, Store as _};
use perihelion::ids::ThreadId;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use serde_json::Value;

use super::world::{World, answering, clarify, ended, first};

/// Three finished threads and one that waits for a person, the newest last.
async fn world() -> World {
    let asks = Rule::new(clarify("Which?")).contains("unclear");
    let world = World::new(first(asks, answering())).await;
    for thread in ["a", "b", "c"] {
        world.run(&["run", "clear", "--thread", thread, "-q"]).await.code(0);
    }
    world.run(&["run", "unclear", "--thread", "waits", "-q"]).await.code(3);
    world
}

async fn left(world: &World) -> Vec<String> {
    let list = world.run(&["threads", "--json"]).await.code(0).json();
    let title = |one: &Value| one["title"].as_str().unwrap().to_owned();
    let mut left: Vec<String> = list.as_array().unwrap().iter().map(title).collect();
    left.sort();
    left
}

#[tokio::test]
async fn the_newest_threads_and_all_waiting_ones_survive_pruning() {
    let world = world().await;
    world.run(&["run", "again", "--thread", "a", "-q"]).await.code(0);
    let prune = ["threads", "prune", "--keep", "1"];
    let dry = world.run(&[&prune[..], &["--dry-run"]].concat()).await.code(0);
    let dry = dry.says("would delete 2 threads; skipped 1 running or interrupted");
    assert_eq!(dry.stdout.lines().count(), 2);
    assert_eq!(left(&world).await.len(), 4);
    world.run(&prune).await.code(0).says("deleted 2 threads; skipped 1 running or interrupted");
    assert_eq!(left(&world).await, ["a", "waits"]);
    world
        .run(&[&prune[..], &["--include-interrupted"]].concat())
        .await
        .code(0)
        .says("deleted 1 thread");
    assert_eq!(left(&world).await, ["a"]);
}

#[tokio::test]
async fn long_threads_are_shortened_all_at_once() {
    let world = world().await;
    world.run(&["run", "again", "--thread", "a", "-q"]).await.code(0);
    let prune = ["threads", "prune", "--keep-steps", "5"];
    let dry = world.run(&[&prune[..], &["--dry-run"]].concat()).await.code(0);
    dry.says("would delete 0 threads; would shorten 1");
    let state = ["threads", "state", "a", "--json"];
    let before = world.run(&state).await.code(0).stdout;
    let json = world.run(&[&prune[..], &["--json"]].concat()).await.code(0).json();
    assert_eq!(json["shortened"][0]["first_step"], 4);
    assert_eq!(world.run(&state).await.code(0).stdout, before);
    let again = world.run(&[&prune[..], &["--json"]].concat()).await.code(0).json();
    assert_eq!(again["shortened"], Value::Array(Vec::new()), "nothing is left to drop");
}

#[tokio::test]
async fn pruning_without_options_follows_the_settings() {
    let mut world = world().await;
    world.run(&["threads", "prune"]).await.code(2).says("[retention]");
    world.write("perihelion.toml", "[retention]\nmax_age = \"1w\"\nmax_threads = 2\n");
    world.run(&["threads", "prune"]).await.code(0).says("deleted 2 threads");
    assert_eq!(left(&world).await, ["c", "waits"]);
    world.set("PERIHELION_RETENTION_MAX_AGE", "0s");
    world
        .run(&["threads", "prune"])
        .await
        .code(0)
        .says("deleted 1 thread; skipped 1 running or interrupted");
    world.write("perihelion.toml", "[retention]\nmax_age = \"soon\"\n");
    world.run(&["threads"]).await.code(2).says("expected a number and a unit");
}

/// The world's database, as another process has it.
pub(super) async fn store(world: &World) -> SqliteStore {
    let path = world.path("data/perihelion/perihelion.db").display().to_string();
    SqliteStore::open(&path).await.unwrap()
}

#[tokio::test]
async fn a_damaged_thread_is_named_and_other_threads_are_still_shortened() {
    let world = world().await;
    for thread in ["a", "b", "c"] {
        world.run(&["run", "again", "--thread", thread, "-q"]).await.code(0);
    }
    let store = store(&world).await;
    let damaged = ThreadId::from_name("b").0;
    let damage = async |connection: &mut sqlx::SqliteConnection| {
        let delete = sqlx::query("DELETE FROM step WHERE thread_id = ?1 AND seq = 2");
        delete.bind(damaged.0).execute(connection).await.map(|_| ())
    };
    store.with_connection(damage).await.unwrap();
    store.close().await;
    let pruned = world.run(&["threads", "prune", "--keep-steps", "5", "--json"]).await.code(1);
    let pruned = pruned.says("threads that could not be shortened: 1");
    let json = pruned.json();
    assert_eq!(json["shortened"].as_array().unwrap().len(), 2, "{json}");
    assert_eq!(json["failed"][0]["thread_id"], damaged.to_string());
    let error = json["failed"][0]["error"].as_str().unwrap();
    assert!(error.contains("is damaged"), "{error}");
}

#[tokio::test]
async fn a_running_thread_is_deleted_only_with_force() {
    let world = World::new(answering()).await;
    world.run(&["run", "q", "--thread", "queued", "--detach", "-q"]).await.code(0);
    world.run(&["run", "q", "--thread", "busy", "-q"]).await.code(0);
    let store = store(&world).await;
    let busy = ThreadId::from_name("busy").0;
    let hour = Duration::from_secs(3600);
    store.claim(Claim::new(busy, "elsewhere/boot+pid/7/7/1", hour)).await.unwrap();
    store.close().await;
    for (thread, how) in
        [("busy", "being run by process 7 on elsewhere"), ("queued", "queued for the workers")]
    {
        let refused = world.run(&["threads", "delete", thread, "--yes"]).await.code(1);
        refused.says(how).says("--force");
        world.run(&["threads", "show", thread]).await.code(0);
        world.run(&["threads", "delete", thread, "--yes", "--force"]).await.code(0);
        world.run(&["threads", "show", thread]).await.code(2);
    }
}

#[tokio::test]
async fn a_run_ends_soon_after_its_thread_is_deleted() {
    let hangs = Rule::new(Reply::hang()).role(Role::Qa);
    let mut world = World::new(first(hangs, answering())).await;
    world.set("PERIHELION_STORE_LEASE_SEC", "3");
    let run = world.start(&["run", "q", "--thread", "gone", "--json", "-q"]);
    world.model.wait_for_requests(2).await;
    world.run(&["threads", "delete", "gone", "--yes", "--force"]).await.code(0);
    let ended = tokio::time::timeout(Duration::from_secs(20), ended(run)).await.unwrap().code(1);
    assert_eq!(ended.json()["error"]["code"], "cli.deleted");
    ended.says("thread gone was deleted during its run");
}
