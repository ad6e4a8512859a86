//! Many worker processes with many threads each, on one Postgres: how fast, and for what its sessions wait.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perihelion::ids::ThreadId;
use perihelion::runtime::{LOCAL_TENANT, Runtime};
use serde_json::json;
use sqlx::{Connection as _, PgConnection, Row as _};
use tokio::process::{Child, Command};

/// Threads that one worker drives at the same time.
const EACH: usize = 64;

/// How often the sessions are looked at.
const EVERY: Duration = Duration::from_millis(100);

/// Wait events of active sessions; `none` if a session computes.
const WAITS: &str = "SELECT COALESCE(wait_event_type || ': ' || wait_event, 'none'), count(*) FROM pg_stat_activity
     WHERE state = 'active' AND pid <> pg_backend_pid() AND datname = current_database() GROUP BY 1";

pub async fn measure(runtime: &Arc<Runtime>, workers: usize, database: &str, model: &str) {
    for _ in 0..workers * EACH {
        let request = super::request(super::model::SHORT);
        runtime.submit(LOCAL_TENANT, ThreadId::new(), None, request).await.unwrap();
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("mcp-servers.toml"), "").unwrap();
    let began = Instant::now();
    let mut children: Vec<Child> = (0..workers)
        .map(|_| {
            Command::new(super::program::path())
                .args(["worker", "--drain", "--quiet", "--concurrency", &EACH.to_string()])
                .current_dir(home.path())
                .env("DATABASE_URL", database)
                .env("OPENAI_BASE_URL", model)
                .env("OPENAI_API_KEY", "none")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()
                .unwrap()
        })
        .collect();
    let mut sessions = PgConnection::connect(database).await.unwrap();
    let mut waits = BTreeMap::<String, i64>::new();
    let mut failed = 0;
    while !children.is_empty() {
        tokio::time::sleep(EVERY).await;
        for row in sqlx::query(WAITS).fetch_all(&mut sessions).await.unwrap() {
            *waits.entry(row.get(0)).or_default() += row.get::<i64, _>(1);
        }
        children.retain_mut(|child| match child.try_wait().unwrap() {
            Some(status) => {
                failed += usize::from(!status.success());
                false
            }
            None => true,
        });
    }
    let seconds = began.elapsed().as_secs_f64();
    let open = "SELECT count(*) FROM thread WHERE status <> 'idle' OR error IS NOT NULL";
    let open: i64 = sqlx::query(open).fetch_one(&mut sessions).await.unwrap().get(0);
    println!(
        "{}",
        json!({
            "bench": "workers", "workers": workers, "threads": workers * EACH, "seconds": seconds,
            "threads_per_s": (workers * EACH) as f64 / seconds, "failed_workers": failed, "threads_not_done": open,
            "waits_of_active_sessions": waits,
        })
    );
}
