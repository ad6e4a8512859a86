//! The servers: how each is started, and what is asked of it.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Command;

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::json;
use tempfile::TempDir;

use super::drive::{Calls, Case, Seen, drive};

/// A product that no server knows unless it computes it.
const SUM: &str = "SELECT 271 * 829 AS product";
const PRODUCT: &str = "224659";

/// What a case may use.
pub struct Place {
    name: &'static str,
    /// Where this server is installed.
    home: PathBuf,
    /// Files of the case; they go when it is over.
    files: TempDir,
    /// The address of a page of this machine.
    page: String,
}

impl Place {
    pub async fn new(name: &'static str, servers: &Path) -> Self {
        let home = servers.join(name);
        let hint = "run `make test-servers`, which installs it";
        assert!(home.join("installed").exists(), "{name} is not installed; {hint}");
        let page = "<title>The visit</title><h1>A comet swings by</h1>";
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(move || async move { Html(page) }));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { name, home, files: tempfile::tempdir().unwrap(), page: format!("http://{address}/") }
    }

    /// What is installed, with its version.
    pub fn package(&self) -> String {
        let installed = std::fs::read_to_string(self.home.join("installed")).unwrap();
        let first = installed.split_whitespace().next().unwrap();
        first.trim_start_matches("@modelcontextprotocol/").replace("==", "@")
    }

    fn npm(&self, program: &str) -> String {
        format!("command = {:?}\n", self.home.join("node_modules/.bin").join(program))
    }

    fn python(&self, program: &str) -> String {
        format!("command = {:?}\n", self.home.join("bin").join(program))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    fn case(&self, table: String, calls: Calls, expects: &str) -> Case {
        let (server, expects) = (self.name, expects.to_owned());
        Case { server, table, calls, expects, asks: false, environment: Vec::new() }
    }

    fn drive(&self, table: String, calls: Calls, expects: &str) -> Option<Work> {
        Some(Box::pin(drive(self.case(table, calls, expects))))
    }
}

/// What is done with a server.
pub type Work = Pin<Box<dyn Future<Output = Seen> + Send>>;
type Make = fn(&Place) -> Option<Work>;

/// Every server by the name of its directory.
pub const CASES: [(&str, Make); 12] = [
    ("everything", everything),
    ("filesystem", filesystem),
    ("memory", memory),
    ("sequential-thinking", sequential_thinking),
    ("postgres", postgres),
    ("postgres", adversary),
    ("time", time),
    ("git", git),
    ("sqlite", sqlite),
    ("motherduck", motherduck),
    ("alchemy", alchemy),
    // The last: where there is no browser, ten others have been driven.
    ("playwright", playwright),
];

fn everything(place: &Place) -> Option<Work> {
    let table = place.npm("mcp-server-everything");
    place.drive(table, vec![("echo", json!({ "message": "ad astra" }))], "Echo: ad astra")
}

fn filesystem(place: &Place) -> Option<Work> {
    let file = place.file("comet.txt");
    std::fs::write(&file, "It comes back in 2061.\n").unwrap();
    let table =
        place.npm("mcp-server-filesystem") + &format!("args = [{:?}]\n", place.files.path());
    place.drive(table, vec![("read_text_file", json!({ "path": file }))], "It comes back in 2061.")
}

fn memory(place: &Place) -> Option<Work> {
    let environment = format!("env = {{ MEMORY_FILE_PATH = {:?} }}\n", place.file("memory.jsonl"));
    let entity =
        json!({ "name": "Halley", "entityType": "comet", "observations": ["seen in 1986"] });
    let calls =
        vec![("create_entities", json!({ "entities": [entity] })), ("read_graph", json!({}))];
    place.drive(place.npm("mcp-server-memory") + &environment, calls, "seen in 1986")
}

fn sequential_thinking(place: &Place) -> Option<Work> {
    let thought = json!({
        "thought": "Count the stars.", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false,
    });
    let table = place.npm("mcp-server-sequential-thinking");
    place.drive(table, vec![("sequentialthinking", thought)], "thoughtHistoryLength")
}

/// The table of the Postgres server, which has no program of its own in its package's list.
fn postgres_table(place: &Place) -> String {
    let script = "node_modules/@modelcontextprotocol/server-postgres/dist/index.js";
    let script = place.home.join(script);
    format!("command = \"node\"\nargs = [{script:?}, \"${{TEST_DATABASE_URL}}\"]\n")
}

pub fn database() -> String {
    std::env::var("TEST_DATABASE_URL").unwrap_or_else(|_| {
        panic!("TEST_DATABASE_URL is not set: run `make test-servers`, which starts a PostgreSQL")
    })
}

fn postgres(place: &Place) -> Option<Work> {
    let calls = vec![("query", json!({ "sql": SUM }))];
    let environment = vec![("TEST_DATABASE_URL", database())];
    let case = Case { environment, ..place.case(postgres_table(place), calls, PRODUCT) };
    Some(Box::pin(drive(case)))
}

fn adversary(place: &Place) -> Option<Work> {
    Some(Box::pin(super::adversary::drive(postgres_table(place))))
}

fn time(place: &Place) -> Option<Work> {
    let table = place.python("mcp-server-time");
    place.drive(table, vec![("get_current_time", json!({ "timezone": "Etc/UTC" }))], "is_dst")
}

fn git(place: &Place) -> Option<Work> {
    let made = Command::new("git").args(["init", "--quiet"]).arg(place.files.path()).status();
    assert!(made.unwrap().success());
    std::fs::write(place.file("new.txt"), "new").unwrap();
    let table = place.python("mcp-server-git")
        + &format!("args = [\"--repository\", {:?}]\n", place.files.path());
    place.drive(table, vec![("git_status", json!({ "repo_path": place.files.path() }))], "new.txt")
}

fn sqlite(place: &Place) -> Option<Work> {
    let table = place.python("mcp-server-sqlite")
        + &format!("args = [\"--db-path\", {:?}]\n", place.file("data.db"));
    place.drive(table, vec![("read_query", json!({ "query": SUM }))], PRODUCT)
}

fn motherduck(place: &Place) -> Option<Work> {
    let table = place.python("mcp-server-motherduck")
        + "args = [\"--db-path\", \":memory:\", \"--read-write\"]\n";
    let calls = vec![("execute_query", json!({ "sql": SUM }))];
    // It calls the tool destructive, and so a person is asked.
    Some(Box::pin(drive(Case { asks: true, ..place.case(table, calls, PRODUCT) })))
}

fn alchemy(place: &Place) -> Option<Work> {
    let address = format!("sqlite:///{}", place.file("data.db").display());
    let table = place.python("mcp-alchemy") + &format!("env = {{ DB_URL = {address:?} }}\n");
    place.drive(table, vec![("execute_query", json!({ "query": SUM }))], PRODUCT)
}

fn playwright(place: &Place) -> Option<Work> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = |name| std::env::split_paths(&path).map(|at| at.join(name)).find(|at| at.exists());
    let browser = names.into_iter().find_map(found)?;
    let mut args = vec!["--headless", "--isolated", "--executable-path", browser.to_str()?];
    // A browser does not confine its pages as root.
    if nix::unistd::geteuid().is_root() {
        args.push("--no-sandbox");
    }
    let table = place.npm("playwright-mcp") + &format!("args = {args:?}\n");
    let calls = vec![("browser_navigate", json!({ "url": place.page }))];
    // As above.
    Some(Box::pin(drive(Case { asks: true, ..place.case(table, calls, "The visit") })))
}
