//! The generated catalogue in the servers files of tests: a hundred servers with twenty tools each.

use std::path::{Path, PathBuf};

#[path = "../../fixtures/catalogue_mcp_server/names.rs"]
mod names;

pub use names::{FIELDS, SERVERS, name};

/// Finds the fixture, which cargo builds as an example beside the tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/catalogue_mcp_server");
    assert!(path.exists(), "build it with `cargo build --examples`: {}", path.display());
    path
}

/// Writes the table of a server with so many tools, which notes its starts and calls in files of a directory.
pub fn table(server: usize, tools: usize, notes: &Path) -> String {
    let name = name(server);
    let program = program();
    let started = notes.join("started");
    let called = notes.join("called");
    format!(
        "[mcp_servers.{name}]\ncommand = {program:?}\nargs = [\"{server}\", \"{tools}\"]\n\
         env = {{ STARTED = {started:?}, CALLED = {called:?} }}\n\n"
    )
}

/// Writes the tables of all servers.
pub fn all(notes: &Path) -> String {
    (0..SERVERS).map(|server| table(server, 20, notes)).collect()
}

/// Returns what the servers have noted, `started` or `called`.
pub fn noted(notes: &Path, what: &str) -> Vec<String> {
    let text = std::fs::read_to_string(notes.join(what)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
