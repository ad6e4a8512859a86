//! The hostile MCP server in the servers files of tests, and the processes it leaves.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

/// Finds the fixture, which cargo builds as an example beside the tests.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/hostile_mcp_server");
    assert!(path.exists(), "build it with `cargo build --examples`: {}", path.display());
    path
}

/// Writes a table that starts the fixture in a mode; `more` are further lines of it.
pub fn table(name: &str, mode: &str, more: &str) -> String {
    let program = program();
    format!("[mcp_servers.{name}]\ncommand = {program:?}\nargs = [{mode:?}]\n{more}\n")
}

/// Lists the living processes that carry a mark in their environment.
pub fn marked(mark: &str) -> BTreeSet<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == format!("MARK={mark}").as_bytes())
    })
    .collect()
}

pub fn new_mark() -> (String, String) {
    let mark = uuid::Uuid::new_v4().to_string();
    let line = format!("env = {{ MARK = {mark:?} }}");
    (mark, line)
}

/// Waits until so many processes show their mark; one during its `exec` shows none for a moment.
pub async fn assert_marked(mark: &str, count: usize) {
    let started = perihelion::clock::monotonic();
    while marked(mark).len() != count {
        let found = marked(mark);
        assert!(started.elapsed() < Duration::from_secs(10), "{count} expected: {found:?}");
        tokio::task::yield_now().await;
    }
}

/// Waits until the kernel has taken away every process that was killed.
pub async fn assert_none_left(mark: &str) {
    let started = perihelion::clock::monotonic();
    while !marked(mark).is_empty() {
        assert!(started.elapsed() < Duration::from_secs(10), "left behind: {:?}", marked(mark));
        tokio::task::yield_now().await;
    }
}
