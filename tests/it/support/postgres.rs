//! A Postgres server for tests, and a fresh database per test.
//!
//! Enter at [`server`]. With `TEST_DATABASE_URL` set (as `tests/postgres.sh run` does for a whole run) that
//! server is used; otherwise this process starts its own through `tests/postgres.sh hold`, which stops when
//! this process ends, however it ends: its standard input closes then.

use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection};
use tokio::sync::OnceCell;

/// A reachable Postgres server whose user may create databases.
pub struct Postgres {
    /// URL of its maintenance database.
    admin: String,
    /// Holds the open pipe that keeps our own server running.
    own: Option<Child>,
}

/// A database that no other test uses; dropped with this value.
pub struct Database {
    pub name: String,
    pub url: String,
    admin: String,
}

static SERVER: OnceCell<Postgres> = OnceCell::const_new();

/// Returns the server of this test process, starting one if none is given.
pub async fn server() -> &'static Postgres {
    SERVER
        .get_or_init(|| async {
            match std::env::var("TEST_DATABASE_URL") {
                Ok(url) if !url.is_empty() => Postgres { admin: url, own: None },
                _ => tokio::task::spawn_blocking(Postgres::start).await.unwrap(),
            }
        })
        .await
}

impl Postgres {
    /// Starts a server for one test, which may crash it.
    pub fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/postgres.sh");
        let mut child = Command::new("bash")
            .args([script, "hold"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Not ours to hold open: a runner waits for the test's own standard error to close.
            .stderr(Stdio::null())
            // A runner that kills the test's group must not take the script that cleans up.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        assert!(
            url.starts_with("postgres://"),
            "no Postgres for tests; run `tests/postgres.sh hold` by hand to see why"
        );
        Self { admin: url.trim().to_owned(), own: Some(child) }
    }

    /// Crashes a server of one's own and starts it again on its files.
    pub fn restart(&mut self) {
        let own = self.own.as_mut().unwrap();
        own.stdin.as_mut().unwrap().write_all(b"restart\n").unwrap();
        let mut url = String::new();
        BufReader::new(own.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        assert_eq!(url.trim(), self.admin);
    }

    /// Returns the URL of a database on this server.
    pub fn url(&self, database: &str) -> String {
        with_database(&self.admin, database)
    }

    /// Creates an empty database for one test.
    pub async fn fresh(&self) -> Database {
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        run(&self.admin, &format!("CREATE DATABASE {name}")).await;
        Database { url: self.url(&name), name, admin: self.admin.clone() }
    }
}

impl Database {
    /// Connects to the database.
    pub async fn connect(&self) -> PgConnection {
        options(&self.url).connect().await.unwrap()
    }

    /// Returns the URL for another role with a password.
    pub fn url_as(&self, role: &str, password: &str) -> String {
        let (_, rest) = self.url.split_once('@').unwrap();
        format!("postgres://{role}:{password}@{rest}")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (admin, name) = (self.admin.clone(), self.name.clone());
        // A thread of its own, since this may run inside a runtime.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            runtime.unwrap().block_on(run(&admin, &sql));
        });
        let outcome = dropping.join();
        if !std::thread::panicking() {
            outcome.unwrap();
        }
    }
}

async fn run(url: &str, sql: &str) {
    let mut connection = options(url).connect().await.unwrap();
    connection.execute(AssertSqlSafe(sql)).await.unwrap();
    connection.close().await.unwrap();
}

fn options(url: &str) -> PgConnectOptions {
    url.parse().unwrap()
}

/// Replaces the database's name in a URL, keeping its parameters.
fn with_database(url: &str, database: &str) -> String {
    let (base, parameters) = url.split_once('?').map_or((url, None), |(b, p)| (b, Some(p)));
    let (authority, _) = base
        .rsplit_once('/')
        .filter(|(a, _)| a.contains("://") && !a.ends_with('/'))
        .unwrap_or((base, ""));
    let parameters = parameters.map_or_else(String::new, |p| format!("?{p}"));
    format!("{authority}/{database}{parameters}")
}

#[test]
fn the_database_s_name_is_replaced_in_a_url() {
    assert_eq!(with_database("postgres://u:p@h:1/postgres", "x"), "postgres://u:p@h:1/x");
    assert_eq!(with_database("postgres://u@h", "x"), "postgres://u@h/x");
    assert_eq!(
        with_database("postgres://h/a?sslmode=disable", "x"),
        "postgres://h/x?sslmode=disable"
    );
}
