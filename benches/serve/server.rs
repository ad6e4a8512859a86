//! The server that is measured: the program itself.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::model;

pub struct Server {
    pub url: String,
    child: Child,
    _home: tempfile::TempDir,
}

impl Server {
    pub async fn start(database: Option<String>) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("mcp-servers.toml"), "").unwrap();
        let mut child = Command::new(super::program::path())
            .args(["serve", "--addr", "127.0.0.1:0"])
            .current_dir(home.path())
            .env("OPENAI_BASE_URL", model::start(0).await)
            .env("OPENAI_API_KEY", "k")
            .env("OPENAI_MODEL", "scripted")
            .env("DATABASE_URL", database.unwrap_or_else(|| "sqlite:threads.db".to_owned()))
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if let Some((_, address)) = line.split_once("at http://") {
                break format!("http://{}", address.trim());
            }
        };
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { url, child, _home: home }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }
}

/// Returns the memory that a process holds, in KB.
pub fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}
