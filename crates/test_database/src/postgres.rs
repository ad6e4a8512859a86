//! A Postgres server for tests, and a fresh database per test.
//!
//! Enter at [`server`]. With `TEST_DATABASE_URL` set (as `tests/postgres.sh run` does for a whole run) that
//! server is used; otherwise this process starts its own through `tests/postgres.sh hold`, which stops when
//! this process ends, however it ends: its standard input closes then.

use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::{TestDatabase, with_database};
use tokio::sync::OnceCell;

/// A reachable Postgres server whose user may create databases.
pub struct Postgres {
    /// URL of its maintenance database.
    admin: String,
    /// Holds the open pipe that keeps our own server running.
    own: Option<Child>,
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
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/postgres.sh");
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
    pub async fn fresh(&self) -> TestDatabase {
        TestDatabase::on(&self.admin).await
    }
}
