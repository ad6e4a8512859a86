//! The bundled MCP servers as their clients meet them: the real binary, over its standard streams.

use std::path::Path;

use perihelion::servers::demo_data;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ProtocolVersion, RequestMetaObject, Tool,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use sqlx::Executor;

use crate::support::postgres;

type Client = RunningService<RoleClient, ()>;

fn child(arguments: &[&str]) -> TokioChildProcess {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_perihelion"));
    command.arg("mcp").args(arguments);
    TokioChildProcess::new(command).unwrap()
}

async fn start(arguments: &[&str]) -> Client {
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    ().serve_with_lifecycle(child(arguments), mode).await.unwrap()
}

async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().unwrap().clone();
    let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    client.call_tool(request).await.unwrap()
}

fn text(result: &CallToolResult) -> &str {
    result.content[0].as_text().unwrap().text.as_str()
}

/// Calls a tool that must succeed and returns its data, checked against the schema it promises.
async fn data(client: &Client, tool: &str, arguments: Value) -> Value {
    let result = call(client, tool, arguments).await;
    assert_ne!(result.is_error, Some(true), "{}", text(&result));
    let data = result.structured_content.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    let tool = tools.iter().find(|known| known.name == tool).unwrap();
    let schema = Value::Object(tool.output_schema.as_deref().unwrap().clone());
    assert!(jsonschema::is_valid(&schema, &data), "{data} is not: {schema}");
    data
}

/// Calls a tool that must fail and returns what it says.
async fn failure(client: &Client, tool: &str, arguments: Value) -> String {
    let result = call(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(true), "{}", text(&result));
    text(&result).to_owned()
}

async fn demo() -> (tempfile::TempDir, demo_data::DemoData) {
    let home = tempfile::tempdir().unwrap();
    let data = demo_data::install(home.path()).await.unwrap();
    (home, data)
}

fn annotation(tools: &[Tool], name: &str) -> (Option<bool>, Option<bool>) {
    let tool = tools.iter().find(|tool| tool.name == name).unwrap();
    let annotations = tool.annotations.as_ref().unwrap();
    (annotations.read_only_hint, annotations.idempotent_hint)
}

/// S2.04, S4.05, S4.06: overview, schema, guarded query, preview with statistics.
#[tokio::test]
async fn the_sql_server_answers_questions_about_a_sqlite_file() {
    let (_home, demo) = demo().await;
    let client = start(&["sql", "--database", demo.database.to_str().unwrap()]).await;
    let info = client.peer_info().unwrap();
    assert!(info.instructions.as_deref().unwrap().contains("SQLite"));
    let tools = client.list_all_tools().await.unwrap();
    for tool in ["list_tables", "describe_table", "query"] {
        assert_eq!(annotation(&tools, tool), (Some(true), Some(true)));
    }

    let tables = data(&client, "list_tables", json!({})).await;
    let names: Vec<&str> =
        tables["tables"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["aliases", "countries", "leap_seconds", "transitions", "zone_countries", "zones"]
    );
    let table = data(&client, "describe_table", json!({"table": "transitions"})).await;
    assert_eq!(table["row_count"], 15_487);
    let column = &table["columns"][2];
    assert_eq!((&column["name"], &column["type"]), (&json!("offset_before"), &json!("INTEGER")));
    assert_eq!((&column["nullable"], &column["primary_key"]), (&json!(false), &json!(false)));
    assert!(column["min"].is_number() && column["max"].is_number(), "{column}");
    assert_eq!(table["sample"]["rows"].as_array().unwrap().len(), 3);

    let sql = "SELECT zone, COUNT(*) AS changes FROM transitions \
               WHERE changed_at >= '2010-01-01' AND changed_at < '2026-01-01' AND offset_before <> offset_after \
               GROUP BY zone ORDER BY changes DESC, zone LIMIT 3";
    let answer = data(&client, "query", json!({"sql": sql})).await;
    assert_eq!(answer["columns"], json!(["zone", "changes"]));
    assert_eq!(
        answer["rows"],
        json!([["Africa/Casablanca", 45], ["Africa/El_Aaiun", 45], ["Asia/Hebron", 34]])
    );
    assert_eq!(answer["truncated"], false);
    let shown = call(&client, "query", json!({"sql": sql})).await;
    assert!(
        text(&shown).starts_with("zone | changes\nAfrica/Casablanca | 45\n"),
        "{}",
        text(&shown)
    );
    client.cancel().await.unwrap();
}

/// S2.04: the database's own error comes back, with the way out.
#[tokio::test]
async fn a_failed_query_returns_the_error_of_the_database_and_the_nearest_column() {
    let (_home, demo) = demo().await;
    let client = start(&["sql", "--database", demo.database.to_str().unwrap()]).await;
    let wrong = "SELECT zone_name, COUNT(*) FROM transitions GROUP BY zone_name";
    assert_eq!(
        failure(&client, "query", json!({"sql": wrong})).await,
        "the database says: no such column: zone_name; did you mean zone? Columns of transitions: zone, \
         changed_at, offset_before, offset_after, is_dst, abbreviation."
    );
    let wrong = failure(&client, "query", json!({"sql": "SELECT * FROM transition"})).await;
    assert!(
        wrong.starts_with(
            "refused: no such table among the permitted ones: transition; did you mean transitions?"
        ),
        "{wrong}"
    );
    let wrong = failure(&client, "describe_table", json!({"table": "zone"})).await;
    assert!(wrong.starts_with("no such table: zone; did you mean zones?"), "{wrong}");
    let refused = failure(&client, "query", json!({"sql": "DELETE FROM zones"})).await;
    assert_eq!(
        refused,
        "refused: only a single SELECT may run here (WITH and UNION are fine); refused: DELETE"
    );
    client.cancel().await.unwrap();
}

/// S4.05: table allow-list, row and time limits.
#[tokio::test]
async fn the_sql_server_enforces_its_tables_and_limits() {
    let (_home, demo) = demo().await;
    let path = format!("sqlite:{}", demo.database.display());
    let client = start(&[
        "sql",
        "--database",
        &path,
        "--tables",
        "zones,countries",
        "--max-rows",
        "2",
        "--timeout-sec",
        "1",
    ])
    .await;
    let tables = data(&client, "list_tables", json!({})).await;
    assert_eq!(tables["tables"].as_array().unwrap().len(), 2);
    let refused = failure(&client, "query", json!({"sql": "SELECT * FROM transitions"})).await;
    assert!(refused.ends_with("Tables: countries, zones"), "{refused}");
    let answer = data(&client, "query", json!({"sql": "SELECT name FROM zones"})).await;
    assert_eq!((&answer["row_count"], &answer["truncated"]), (&json!(2), &json!(true)));
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
    let stopped = failure(&client, "query", json!({"sql": endless})).await;
    assert!(stopped.starts_with("the query was stopped after 1 s"), "{stopped}");
    client.cancel().await.unwrap();
}

/// S2.05: on Postgres a read-only transaction and a role of its own stand behind the guard.
#[tokio::test]
async fn the_sql_server_reads_a_postgres_database_as_a_role_that_may_only_read() {
    let database = postgres::server().await.fresh().await;
    let role = format!("reader_{}", database.name);
    let mut admin = database.connect().await;
    let setup = format!(
        "CREATE TABLE orders (id serial PRIMARY KEY, customer text NOT NULL, total numeric(10,2), paid boolean, at timestamptz, info jsonb);
         INSERT INTO orders (customer, total, paid, at, info) VALUES
           ('Ada', 12.50, true, '2024-01-02T03:04:05Z', '{{\"a\": [1]}}'), ('Bob', NULL, false, NULL, NULL), ('Cy', 3, true, NULL, '\"x\"');
         CREATE TABLE secret (x text); CREATE TABLE log (x int);
         CREATE FUNCTION sneak() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'INSERT INTO log VALUES (1) RETURNING x';
         CREATE VIEW sneaky AS SELECT sneak() AS x;
         CREATE ROLE {role} LOGIN PASSWORD 'sesame';
         GRANT SELECT ON orders, sneaky TO {role};"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(setup)).execute(&mut admin).await.unwrap();
    let url = database.url_as(&role, "sesame");
    let client = start(&["sql", "--database", &url, "--max-rows", "2", "--timeout-sec", "1"]).await;

    let tables = data(&client, "list_tables", json!({})).await;
    let names: Vec<&Value> =
        tables["tables"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["orders", "sneaky"]);
    let table = data(&client, "describe_table", json!({"table": "orders"})).await;
    assert_eq!(table["row_count"], 3);
    let column = &table["columns"][0];
    assert_eq!((&column["name"], &column["type"]), (&json!("id"), &json!("integer")));
    assert_eq!((&column["nullable"], &column["primary_key"]), (&json!(false), &json!(true)));
    assert_eq!(table["columns"][2]["type"], "numeric(10,2)");

    let sql =
        "SELECT id, customer AS Name, total, paid, info, id AS id FROM orders ORDER BY id DESC";
    let answer = data(&client, "query", json!({"sql": sql})).await;
    assert_eq!(answer["columns"], json!(["id", "name", "total", "paid", "info", "id"]));
    assert_eq!(
        answer["rows"],
        json!([[3, "Cy", 3.0, true, "x", 3], [2, "Bob", null, false, null, 2]])
    );
    assert_eq!(answer["truncated"], true);

    let wrong = failure(&client, "query", json!({"sql": "SELECT custommer FROM orders"})).await;
    assert!(wrong.starts_with("the database says: column \"custommer\" does not exist"), "{wrong}");
    assert!(wrong.contains("did you mean customer?"), "{wrong}");
    let refused = failure(&client, "query", json!({"sql": "SELECT * FROM secret"})).await;
    assert!(refused.starts_with("refused: no such table"), "{refused}");
    // The guard cannot see into a view; the read-only transaction stops what it does.
    let stopped = failure(&client, "query", json!({"sql": "SELECT * FROM sneaky"})).await;
    assert!(stopped.contains("the transaction is read-only"), "{stopped}");
    let slow = "SELECT count(*) FROM generate_series(1, 1000000000) AS a(i)";
    let stopped = failure(&client, "query", json!({"sql": slow})).await;
    assert!(stopped.starts_with("the query was stopped after 1 s"), "{stopped}");
    client.cancel().await.unwrap();

    let left: i64 =
        sqlx::query_scalar("SELECT count(*) FROM log").fetch_one(&mut admin).await.unwrap();
    assert_eq!(left, 0);
    let forget = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    admin.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(forget))).await.unwrap();
}

/// S1.09: a server that cannot serve says why and ends with an error, without repeating a password.
#[tokio::test]
async fn a_server_that_cannot_start_gives_the_reason() {
    let run = |arguments: &[&str]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_perihelion"));
        command.arg("mcp").args(arguments).stdin(std::process::Stdio::null());
        async move {
            let output = command.output().await.unwrap();
            assert!(!output.status.success() && output.stdout.is_empty());
            String::from_utf8(output.stderr).unwrap()
        }
    };
    let (_home, demo) = demo().await;
    let database = demo.database.to_str().unwrap();
    let words = run(&["sql", "--database", "nowhere.db"]).await;
    assert!(words.contains("no such SQLite database file: nowhere.db"), "{words}");
    let words = run(&["sql", "--database", "mysql://u:hunter2@h/d"]).await;
    assert!(words.contains("this is neither: mysql://") && !words.contains("hunter2"), "{words}");
    let words = run(&["sql", "--database", "postgres://u:hunter2@127.0.0.1:1/d"]).await;
    assert!(words.contains("cannot open the database") && !words.contains("hunter2"), "{words}");
    let words = run(&["sql", "--database", database, "--tables", "zone"]).await;
    assert!(
        words.contains(
            "--tables names a table that the database does not have: zone; did you mean zones?"
        ),
        "{words}"
    );
    let words = run(&["files", "--root", "/no/such/place"]).await;
    assert!(words.contains("cannot serve the directory /no/such/place"), "{words}");
}

/// S1.09: documents are listed, searched and cited by line.
#[tokio::test]
async fn the_files_server_finds_reads_and_stays_inside() {
    let (home, demo) = demo().await;
    std::fs::write(home.path().join("secret.txt"), "hush").unwrap();
    std::os::unix::fs::symlink("../secret.txt", demo.documents.join("link.txt")).unwrap();
    let client = start(&["files", "--root", demo.documents.to_str().unwrap()]).await;
    let tools = client.list_all_tools().await.unwrap();
    for tool in ["list", "read", "search"] {
        assert_eq!(annotation(&tools, tool), (Some(true), Some(true)));
    }
    let top = data(&client, "list", json!({})).await;
    let paths: Vec<&Value> =
        top["entries"].as_array().unwrap().iter().map(|e| &e["path"]).collect();
    assert_eq!(paths, ["calendars.txt", "link.txt", "news", "regions", "theory.txt"]);
    let all = data(&client, "list", json!({"recursive": true})).await;
    assert!(all["entries"].as_array().unwrap().iter().any(|e| e["path"] == "regions/africa.txt"));

    let found =
        data(&client, "search", json!({"query": "permanent +01", "path": "news/2018.txt"})).await;
    let hit = &found["hits"][0];
    assert_eq!(hit["text"], "    Morocco switches to permanent +01 on 2018-10-28.");
    let line = hit["line"].as_u64().unwrap();
    let read =
        call(&client, "read", json!({"path": "news/2018.txt", "start_line": line, "max_lines": 1}))
            .await;
    assert!(text(&read).contains(&format!("{line:>5}      Morocco switches")), "{}", text(&read));

    for path in ["../secret.txt", "link.txt", "/etc/passwd", "regions/../../secret.txt"] {
        let refused = failure(&client, "read", json!({"path": path})).await;
        assert_eq!(refused, format!("outside the served directory, or not readable: {path}"));
    }
    let missing = failure(&client, "read", json!({"path": "africa.txt"})).await;
    assert_eq!(missing, "no such file or directory: africa.txt; did you mean regions/africa.txt?");
    let hush = data(&client, "search", json!({"query": "hush"})).await;
    assert!(!hush["hits"].as_array().unwrap().iter().any(|hit| hit["path"] == "link.txt"));
    client.cancel().await.unwrap();
}

async fn append(client: &Client, key: &str, note: &str) -> Value {
    let mut meta = RequestMetaObject::default();
    meta.insert("dev.perihelion/idempotency-key".into(), key.into());
    let mut request = CallToolRequestParams::new("append_note")
        .with_arguments(json!({"text": note}).as_object().unwrap().clone());
    request.meta = Some(meta);
    client.call_tool(request).await.unwrap().structured_content.unwrap()
}

/// X2: the write tool shows every delivery, and tells repeats apart only where it was told to.
#[tokio::test]
async fn the_notes_server_writes_each_call_unless_it_detects_repeats() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("notes.jsonl");
    let lines = |file: &Path| std::fs::read_to_string(file).unwrap().lines().count();
    let path = file.to_str().unwrap();

    let plain = start(&["notes", "--file", path]).await;
    let tools = plain.list_all_tools().await.unwrap();
    assert_eq!(annotation(&tools, "append_note"), (Some(false), Some(false)));
    assert_eq!(annotation(&tools, "list_notes"), (Some(true), Some(true)));
    assert_eq!(append(&plain, "key-1", "hello").await, json!({"line": 1, "repeated": false}));
    assert_eq!(append(&plain, "key-1", "hello").await, json!({"line": 2, "repeated": false}));
    plain.cancel().await.unwrap();

    let careful = start(&["notes", "--file", path, "--dedupe"]).await;
    let tools = careful.list_all_tools().await.unwrap();
    assert_eq!(annotation(&tools, "append_note"), (Some(false), Some(true)));
    assert_eq!(append(&careful, "key-1", "hello").await, json!({"line": 1, "repeated": true}));
    assert_eq!(append(&careful, "key-2", "more").await, json!({"line": 3, "repeated": false}));
    assert_eq!(lines(&file), 3);
    let notes = data(&careful, "list_notes", json!({})).await;
    assert_eq!(notes["notes"][2], json!({"key": "key-2", "text": "more"}));
    std::fs::write(&file, "one\n".repeat(502)).unwrap();
    let listed = call(&careful, "list_notes", json!({})).await;
    assert!(text(&listed).starts_with("(the first 2 notes are not listed)\n3. one\n"));
    careful.cancel().await.unwrap();
}

#[tokio::test]
async fn an_export_that_the_limits_cut_is_reported_as_incomplete() {
    let (home, demo) = demo().await;
    let database = demo.database.to_str().unwrap();
    let directory = home.path().to_str().unwrap();
    let arguments = ["sql", "--database", database, "--export-dir", directory, "--max-rows", "10"];
    let client = start(&arguments).await;
    for (rows, is_whole) in [(11, false), (10, true)] {
        let sql = format!("SELECT name FROM zones LIMIT {rows}");
        let name = format!("zones-{rows}");
        let input = json!({ "sql": sql, "format": "csv", "name": name });
        let written = call(&client, "export", input).await;
        let text = text(&written);
        assert!(text.starts_with("10 rows in "), "{text}");
        assert_eq!(text.contains("truncated"), !is_whole, "{text}");
    }
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn clients_of_the_older_protocol_are_served_as_well() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("notes.jsonl");
    let client = ().serve(child(&["notes", "--file", path.to_str().unwrap()])).await.unwrap();
    assert_eq!(append(&client, "key", "old").await, json!({"line": 1, "repeated": false}));
    client.cancel().await.unwrap();
}
