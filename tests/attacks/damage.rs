//! Damage to what is stored: refused with the step and the call named, or without consequence; never silently different.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion_test_database::TestDatabase;
use serde_json::json;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _};

use crate::support::postgres::server;
use crate::world::{World, approved, ended, first, select, signal};

/// The notes agent takes one note; while `is_blocked` is set, its next question stays unanswered.
fn noting(is_blocked: Arc<AtomicBool>) -> Script {
    let script = Script::new()
        .rule(Rule::new(select(&["mcp_agent_notes"])).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(approved())
        .rule(Rule::new(Reply::text("It is noted.")).role(Role::Qa));
    let note = Reply::call("append_note", json!({ "text": "remember" }));
    let script = first(Rule::new(note).role(Role::Agent).after_tool_results(0), script);
    script.respond_with(move |request| {
        (request.role == "agent" && request.tool_results() == 1).then(|| {
            if is_blocked.load(Ordering::SeqCst) {
                Reply::text("Too late.").delay_ms(3_600_000)
            } else {
                Reply::text("noted")
            }
        })
    })
}

/// A database that copies can be made of.
pub enum Original {
    Sqlite(PathBuf),
    Postgres(TestDatabase),
}

/// A copy of it, which goes with this value.
pub enum Copy {
    Sqlite(PathBuf),
    Postgres(TestDatabase),
}

impl Original {
    async fn new(world: &World, is_postgres: bool) -> Self {
        if is_postgres {
            Self::Postgres(server().await.fresh().await)
        } else {
            Self::Sqlite(world.path("original.db"))
        }
    }

    fn url(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite:{}", path.display()),
            Self::Postgres(database) => database.url.clone(),
        }
    }

    pub async fn copy(&self, world: &World, name: &str) -> Copy {
        match self {
            Self::Sqlite(path) => {
                let copy = world.path(&format!("{name}.db"));
                for end in ["", "-wal"] {
                    let from = format!("{}{end}", path.display());
                    if std::fs::exists(&from).unwrap() {
                        std::fs::copy(from, format!("{}{end}", copy.display())).unwrap();
                    }
                }
                Copy::Sqlite(copy)
            }
            Self::Postgres(database) => {
                let mut copy = server().await.fresh().await;
                let from = database.name.clone();
                let to = copy.name.clone();
                // One cannot replace the database one is connected to.
                let mut admin = connect(&server().await.url("template1")).await;
                let mut sql = format!("DROP DATABASE {to}; CREATE DATABASE {to} TEMPLATE {from}");
                if copy.url != copy.admin_url {
                    // What is in it belongs to the owner of the first.
                    sql = format!("{sql} OWNER {from}; DROP ROLE {to}");
                    copy.url = copy.url_as(&from, &from);
                }
                for statement in sql.split("; ") {
                    admin.execute(AssertSqlSafe(statement)).await.unwrap();
                }
                admin.close().await.unwrap();
                Copy::Postgres(copy)
            }
        }
    }
}

async fn connect(url: &str) -> sqlx::PgConnection {
    url.parse::<sqlx::postgres::PgConnectOptions>().unwrap().connect().await.unwrap()
}

impl Copy {
    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite:{}", path.display()),
            Self::Postgres(database) => database.url.clone(),
        }
    }

    /// Executes a statement and returns how many rows it changed.
    async fn execute(&self, sql: &str) -> u64 {
        self.try_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Does the same with a statement that the database may refuse.
    pub async fn try_execute(&self, sql: &str) -> Result<u64, sqlx::Error> {
        match self {
            Self::Sqlite(path) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let mut connection = options.connect().await?;
                let done = connection.execute(AssertSqlSafe(sql)).await;
                connection.close().await?;
                Ok(done?.rows_affected())
            }
            Self::Postgres(database) => {
                let mut connection = database.connect().await;
                let done = connection.execute(AssertSqlSafe(sql)).await;
                connection.close().await?;
                Ok(done?.rows_affected())
            }
        }
    }

    /// Lists the columns of a table with their types.
    pub async fn columns(&self, table: &str) -> Vec<(String, String)> {
        match self {
            Self::Sqlite(path) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let mut connection = options.connect().await.unwrap();
                let rows = sqlx::query("SELECT name, lower(type) FROM pragma_table_info(?1)");
                let rows = rows.bind(table).fetch_all(&mut connection).await.unwrap();
                rows.iter().map(|row| (row.get(0), row.get(1))).collect()
            }
            Self::Postgres(database) => {
                let mut connection = database.connect().await;
                let rows = sqlx::query(
                    "SELECT column_name::text, data_type::text FROM information_schema.columns
                     WHERE table_schema = 'public' AND table_name = $1 ORDER BY ordinal_position",
                );
                let rows = rows.bind(table).fetch_all(&mut connection).await.unwrap();
                rows.iter().map(|row| (row.get(0), row.get(1))).collect()
            }
        }
    }
}

/// Writes another value of the same kind into a column.
pub fn other(column: &str, kind: &str) -> String {
    let swap = |one: &str, two: &str| {
        format!("CASE WHEN {column} = '{one}' THEN '{two}' ELSE '{one}' END")
    };
    match (column, kind) {
        ("status", _) => swap("done", "started"),
        ("kind", _) => swap("tool", "model"),
        // Microseconds since 1970 in SQLite.
        (_, "integer" | "bigint" | "smallint") => format!("{column} + 1"),
        (_, "boolean") => format!("NOT {column}"),
        (_, "text") => format!("{column} || 'x'"),
        (_, "uuid") => "gen_random_uuid()".to_owned(),
        (_, "bytea") => format!("set_byte({column}, 5, get_byte({column}, 5) # 1)"),
        (_, "blob") => format!(
            "CAST(substr({column}, 1, 5) || CASE substr({column}, 6, 1) WHEN X'41' THEN X'42' ELSE X'41' END \
             || substr({column}, 7) AS BLOB)"
        ),
        (_, "timestamp with time zone") => format!("{column} + interval '1 hour'"),
        other => panic!("no other value for {other:?}"),
    }
}

/// A thread whose process was killed after its call was made and recorded.
pub async fn killed(is_postgres: bool) -> (World, Original) {
    let is_blocked = Arc::new(AtomicBool::new(true));
    let world = World::new(noting(Arc::clone(&is_blocked))).await;
    let original = Original::new(&world, is_postgres).await;
    let url = original.url();
    let args = ["--database", &url, "run", "Note it", "--thread", "t", "--quiet"];
    let recorded = |world: &World| {
        world.model.requests().iter().any(|one| one.role == "agent" && one.tool_results() == 1)
    };
    kill_when(&world, &args, recorded).await;
    is_blocked.store(false, Ordering::SeqCst);
    (world, original)
}

/// Starts the program and kills it as soon as something is so.
async fn kill_when(world: &World, args: &[&str], it_is_so: impl Fn(&World) -> bool) {
    let mut child = world.start(args);
    while !it_is_so(world) {
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        perihelion::clock::sleep(std::time::Duration::from_millis(20)).await;
    }
    signal(&child, Signal::SIGKILL);
    assert!(!ended(child).await.status.success());
}

/// A thread about a paper that was attached, whose process was killed before its answer was written.
pub async fn killed_with_a_paper(is_postgres: bool) -> (World, Original) {
    let is_blocked = Arc::new(AtomicBool::new(true));
    let script = Script::new()
        .rule(Rule::new(select(&["mcp_agent_notes"])).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(Rule::new(Reply::text("It is read.")).role(Role::Agent))
        .rule(approved());
    let blocked = Arc::clone(&is_blocked);
    let script = script.respond_with(move |request| {
        (request.role == "qa").then(|| {
            if blocked.load(Ordering::SeqCst) {
                Reply::text("Too late.").delay_ms(3_600_000)
            } else if request.contains("as it stood on the shelf") {
                // What was attached is shown with each question.
                Reply::text("It says so.")
            } else {
                Reply::text("There is no paper.")
            }
        })
    });
    let world = World::new(script).await;
    world.write("paper.txt", &"as it stood on the shelf\n".repeat(200));
    let original = Original::new(&world, is_postgres).await;
    let url = original.url();
    let run = ["run", "What does it say?", "--attach", "paper.txt", "--thread", "t", "--quiet"];
    let args = [&["--database", url.as_str()][..], &run].concat();
    kill_when(&world, &args, |world| world.asked(Role::Qa) > 0).await;
    is_blocked.store(false, Ordering::SeqCst);
    (world, original)
}

pub fn notes(world: &World) -> usize {
    world.read("notes.jsonl").lines().count()
}

async fn every_database(test: impl AsyncFn(World, Original)) {
    for is_postgres in [false, true] {
        let (world, original) = killed(is_postgres).await;
        assert_eq!(notes(&world), 1);
        test(world, original).await;
    }
}

/// X2: a flipped bit in the key of a recorded call sent the write again, one in an outcome gave another answer.
#[tokio::test]
async fn a_journal_row_that_was_altered_in_any_column_stops_export_with_the_step_named() {
    every_database(async |world, original| {
        let copy = original.copy(&world, "columns").await;
        let whole = ["--database", &copy.url(), "threads", "export", "t"];
        world.run(&whole).await.code(0);
        for (column, kind) in copy.columns("effect").await {
            // When a call ended is shown and nothing more.
            if column == "ended_at" {
                continue;
            }
            let copy = original.copy(&world, &format!("effect_{column}")).await;
            let value = other(&column, &kind);
            let sql = format!("UPDATE effect SET {column} = {value} WHERE kind = 'tool'");
            assert_eq!(copy.execute(&sql).await, 1, "{sql}");
            let args = ["--database", &copy.url(), "threads", "export", "t"];
            let refused = world.run(&args).await;
            assert_eq!(refused.status.code(), Some(1), "{column}: {refused:#?}");
            assert!(refused.stderr.contains("of the thread"), "{column}: {refused:#?}");
            assert!(refused.stderr.contains("is damaged"), "{column}: {refused:#?}");
        }
    })
    .await;
}

/// X2
#[tokio::test]
async fn a_damaged_journal_stops_resume_and_replay_and_sends_no_call_again() {
    every_database(async |world, original| {
        let of_tool = |column: &str, kind: &str| {
            format!("UPDATE effect SET {column} = {} WHERE kind = 'tool'", other(column, kind))
        };
        let bytes = if matches!(original, Original::Sqlite(_)) { "blob" } else { "bytea" };
        let time = if matches!(original, Original::Sqlite(_)) {
            "integer"
        } else {
            "timestamp with time zone"
        };
        let damages = [
            ("key", of_tool("key", bytes)),
            ("request", of_tool("request", bytes)),
            ("outcome", of_tool("outcome", bytes)),
            ("status", of_tool("status", "text")),
            ("lost", "DELETE FROM effect WHERE kind = 'tool'".to_owned()),
            ("model", "DELETE FROM effect WHERE kind = 'model' AND name = 'agent'".to_owned()),
            ("made", format!("UPDATE thread SET created_at = {}", other("created_at", time))),
            ("head", "UPDATE thread SET head = head - 1".to_owned()),
            ("head_beyond", "UPDATE thread SET head = head + 1".to_owned()),
        ];
        for (name, sql) in damages {
            let copy = original.copy(&world, name).await;
            assert_eq!(copy.execute(&sql).await, 1, "{sql}");
            let asked = world.model.requests().len();
            for command in [&["replay", "t"][..], &["resume", "t", "--quiet"]] {
                let url = copy.url();
                let args = [&["--database", url.as_str()], command].concat();
                let refused = world.run(&args).await;
                assert_eq!(refused.status.code(), Some(1), "{name}: {refused:#?}");
                assert!(refused.stderr.contains("is damaged"), "{name}: {refused:#?}");
            }
            assert_eq!((notes(&world), world.model.requests().len()), (1, asked), "{name}");
        }
        // What is whole continues, and makes no call again.
        let copy = original.copy(&world, "whole").await;
        let args = ["--database", &copy.url(), "resume", "t", "--quiet"];
        assert_eq!(world.run(&args).await.code(0).stdout, "It is noted.\n");
        assert_eq!(notes(&world), 1);
    })
    .await;
}

/// X2
#[tokio::test]
async fn an_exported_file_that_was_altered_anywhere_is_not_imported() {
    let (world, original) = killed(false).await;
    let args = ["--database", &original.url(), "threads", "export", "t", "-o", "whole.jsonl"];
    world.run(&args).await.code(0);
    let whole = world.read("whole.jsonl");
    let lines = whole.lines().count();
    for line in 0..lines {
        let altered: Vec<String> = whole
            .lines()
            .enumerate()
            .map(|(number, text)| {
                if number == line {
                    // A digit or a letter in the middle of the line.

                    let middle = text.len() / 2;
                    let at = text[middle..].find(|one: char| one.is_ascii_alphanumeric()).unwrap();
                    let (before, after) = text.split_at(middle + at);
                    let one = if after.starts_with('a') { "b" } else { "a" };
                    format!("{before}{one}{}", &after[1..])
                } else {
                    text.to_owned()
                }
            })
            .collect();
        world.write("altered.jsonl", &(altered.join("\n") + "\n"));
        let args = ["--database", "sqlite:other.db", "threads", "import", "altered.jsonl"];
        world.run(&args).await.code(2).says("cannot import the thread");
    }
    let args = ["--database", "sqlite:other.db", "threads", "import", "whole.jsonl"];
    world.run(&args).await.code(0);
}
