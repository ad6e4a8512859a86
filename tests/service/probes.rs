//! What an operator's probes are told of a server: whether it can serve, and what it did (S1.12).

use perihelion_test_database::TestDatabase;
use serde_json::json;

use super::saying;
use super::served::Served;

/// S1.12
#[tokio::test]
async fn a_server_is_ready_while_its_database_answers_and_no_longer() {
    let served = Served::postgres().await;
    let ready = async |code: u16| {
        while served.get("/readyz").await.0 != code {
            tokio::task::yield_now().await;
        }
    };
    ready(200).await;
    let database: &TestDatabase = served.on_postgres();
    let mut admin = database.connect().await;
    let mut tell = async |sql: String| {
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut admin).await.unwrap();
    };
    let role = &database.name;
    tell(format!("ALTER ROLE {role} NOLOGIN")).await;
    tell(format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"
    ))
    .await;
    ready(503).await;
    assert_eq!(served.get("/healthz").await.0, 200, "the process lives");
    // Who has no credential learns nothing of where it is.
    for path in ["/readyz", "/v1/auth/ways", "/threads/0197a000-0000-7000-8000-00000000000a"] {
        let answer = served.http.get(format!("{}{path}", served.url)).send().await.unwrap();
        let code = answer.status();
        let text = answer.text().await.unwrap();
        let is_named =
            [role.as_str(), "postgres", "127.0.0.1"].iter().any(|one| text.contains(one));
        assert!(!is_named, "{path}: {code} {text}");
    }
    tell(format!("ALTER ROLE {role} LOGIN")).await;
    ready(200).await;
    let (code, reply) = served.post("/runs/wait", &saying("hello")).await;
    assert_eq!((code, &reply["answer"]), (200, &json!("Hello from the star.")), "{reply}");
}

/// S1.12
#[tokio::test]
async fn a_server_exports_its_runs_and_threads_to_prometheus() {
    let served = Served::sqlite().await;
    let thread = served.thread().await;
    served.post(&format!("/threads/{thread}/runs/wait"), &saying("hello")).await;
    served.post("/runs/wait", &saying("clarify this")).await;
    let text = served.http.get(format!("{}/metrics", served.url)).send().await.unwrap();
    assert_eq!(text.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = text.text().await.unwrap();
    for line in [
        r#"perihelion_runs_started_total{perihelion_graph="swarm"} 2"#,
        r#"perihelion_runs_ended_total{perihelion_graph="swarm",perihelion_status="done"} 1"#,
        r#"perihelion_runs_ended_total{perihelion_graph="swarm",perihelion_status="interrupted"} 1"#,
        r#"perihelion_runs_active{perihelion_graph="swarm"} 0"#,
        r#"perihelion_threads{perihelion_status="idle"} 1"#,
        r#"perihelion_threads{perihelion_status="interrupted"} 1"#,
    ] {
        assert!(text.lines().any(|one| one == line), "missing: {line}\n{text}");
    }
}

/// X5: an acknowledged run is neither lost nor failed because its database was away.
#[tokio::test]
async fn a_run_whose_database_disappears_before_its_input_is_stored_is_driven_again() {
    let served = Served::postgres().await;
    let thread = served.thread().await;
    let database: &TestDatabase = served.on_postgres();
    let role = &database.name;
    let mut holder = database.connect().await;
    let mut admin = database.connect().await;
    for _ in 0..3 {
        // Its input cannot be written from here on; the run is accepted all the same.
        let lock = "BEGIN; LOCK TABLE step IN ACCESS EXCLUSIVE MODE";
        sqlx::raw_sql(lock).execute(&mut holder).await.unwrap();
        let runs = format!("/threads/{thread}/runs");
        let (code, run) = served.post(&runs, &saying("hello")).await;
        assert_eq!(code, 200, "{run}");
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE usename = $1 AND wait_event_type = 'Lock'";
        loop {
            let count: i64 =
                sqlx::query_scalar(waiting).bind(role).fetch_one(&mut admin).await.unwrap();
            if count > 0 {
                break;
            }
        }
        for sql in [
            format!("ALTER ROLE {role} NOLOGIN"),
            format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"
            ),
        ] {
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut admin).await.unwrap();
        }
        while served.get("/readyz").await.0 != 503 {
            tokio::task::yield_now().await;
        }
        sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.unwrap();
        let back = format!("ALTER ROLE {role} LOGIN");
        sqlx::raw_sql(sqlx::AssertSqlSafe(back)).execute(&mut admin).await.unwrap();
        while served.get("/readyz").await.0 != 200 {
            tokio::task::yield_now().await;
        }
        let id = run["run_id"].as_str().unwrap();
        let (_, values) = served.get(&format!("{runs}/{id}/join")).await;
        let (_, ended) = served.get(&format!("{runs}/{id}")).await;
        assert_eq!(ended["status"], "success", "{ended}\n{values}");
        assert_eq!(values["answer"], "Hello from the star.", "{values}");
        let (_, stands) = served.get(&format!("/threads/{thread}")).await;
        assert_eq!(stands["status"], "idle", "{stands}");
    }
}
