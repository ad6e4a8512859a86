//! A Postgres server of our own that can be stopped at once and started again.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A server that ends with this value, also when this process is killed.
pub struct Cluster {
    pub url: String,
    _script: Child,
    orders: ChildStdin,
    replies: Lines<BufReader<ChildStdout>>,
}

impl Cluster {
    /// Starts a server whose files lie under `directory`, with the settings given as `-c name=value …`.
    pub async fn start(directory: &Path, settings: &str) -> Self {
        let mut script = Command::new("bash")
            .args([concat!(env!("CARGO_MANIFEST_DIR"), "/tests/postgres.sh"), "hold"])
            .env("TMPDIR", directory)
            .env("TEST_POSTGRES_SETTINGS", settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What kills this process's group must not take the script that cleans up.
            .process_group(0)
            .spawn()
            .unwrap();
        let orders = script.stdin.take().unwrap();
        let replies = BufReader::new(script.stdout.take().unwrap()).lines();
        let mut cluster = Self { url: String::new(), _script: script, orders, replies };
        cluster.url = cluster.reply().await;
        cluster
    }

    async fn reply(&mut self) -> String {
        let line = self.replies.next_line().await.unwrap();
        line.expect("no Postgres; run `tests/postgres.sh hold` by hand to see why")
    }

    /// Stops the server as `pg_ctl stop -m immediate` does, and returns when it is back.
    pub async fn crash(&mut self) {
        self.orders.write_all(b"restart\n").await.unwrap();
        assert_eq!(self.reply().await, self.url);
    }

    /// Stops the server and waits until nothing of it is left.
    pub async fn stop(self) {
        let Self { mut _script, orders, .. } = self;
        drop(orders);
        _script.wait().await.unwrap();
    }
}
