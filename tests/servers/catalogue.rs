//! The servers: how each is started, and what is asked of it.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::json;
use tempfile::TempDir;

use super::adversary;
use super::drive::{Calls, Case};

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
}

impl Place {
    pub fn new(name: &'static str, servers: &Path) -> Self {
        let home = servers.join(name);
        let hint = "run `make test-servers`, which installs it";
        assert!(home.join("installed").exists(), "{name} is not installed; {hint}");
        Self { name, home, files: tempfile::tempdir().unwrap() }
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

    /// The Python that the server is installed with.
    pub fn interpreter(&self) -> PathBuf {
        self.home.join("bin/python")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    fn case(&self, table: String, calls: Calls, expects: &str) -> Case {
        let server = self.name;
        let expects = expects.to_owned();
        let questions = Vec::new();
        let environment = Vec::new();
        Case { server, table, calls, expects, questions, environment, process: None }
    }
}

/// What is asked of a server, or why nothing is.
type Outcome = Result<Case, &'static str>;
type Make = fn(&Place) -> Outcome;

/// What is driven: its name, the directory of its server, and how.
pub const CASES: [(&str, &str, Make); 19] = [
    ("everything", "everything", everything),
    ("everything, asking", "everything", everything_asking),
    ("everything, over HTTP", "everything", everything_over_http),
    ("filesystem", "filesystem", filesystem),
    ("memory", "memory", memory),
    ("sequential-thinking", "sequential-thinking", sequential_thinking),
    ("postgres", "postgres", postgres),
    ("postgres, writing", "postgres", postgres_writing),
    ("time", "time", time),
    ("git", "git", git),
    ("sqlite", "sqlite", sqlite),
    ("motherduck", "motherduck", motherduck),
    ("alchemy", "alchemy", alchemy),
    ("sqlite, analyst", "sqlite", sqlite_analyst),
    ("alchemy, analyst", "alchemy", alchemy_analyst),
    ("motherduck, analyst", "motherduck", motherduck_analyst),
    ("postgres, analyst", "postgres", postgres_analyst),
    // The last, which need more than is installed: by then ten servers have been driven.
    ("filesystem, confined", "filesystem", filesystem_confined),
    ("playwright", "playwright", playwright),
];

fn everything(place: &Place) -> Outcome {
    let table = place.npm("mcp-server-everything");
    Ok(place.case(table, vec![("echo", json!({ "message": "ad astra" }))], "Echo: ad astra"))
}

fn everything_asking(place: &Place) -> Outcome {
    let table = place.npm("mcp-server-everything");
    let calls = vec![("trigger-elicitation-request", json!({}))];
    let answer = vec!["--answer", r#"{"name": "Edmond", "integer": 76}"#];
    let questions = vec![("elicitation", answer)];
    let case = Case { questions, ..place.case(table, calls, "Favorite Integer: 76") };
    Ok(case)
}

fn everything_over_http(place: &Place) -> Outcome {
    // A port that was free a moment ago.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut process =
        tokio::process::Command::new(place.home.join("node_modules/.bin/mcp-server-everything"));
    process.arg("streamableHttp").env("PORT", port.to_string());
    process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut process = process.spawn().unwrap();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert_eq!(process.try_wait().unwrap(), None, "it ended before it listened");
        std::thread::yield_now();
    }
    let table = format!("url = \"http://127.0.0.1:{port}/mcp\"\n");
    let calls = vec![("get-structured-content", json!({ "location": "Chicago" }))];
    let case = Case { process: Some(process), ..place.case(table, calls, "humidity") };
    Ok(case)
}

fn filesystem(place: &Place) -> Outcome {
    let file = place.file("comet.txt");
    std::fs::write(&file, "It comes back in 2061.\n").unwrap();
    let table =
        place.npm("mcp-server-filesystem") + &format!("args = [{:?}]\n", place.files.path());
    Ok(place.case(
        table,
        vec![("read_text_file", json!({ "path": file }))],
        "It comes back in 2061.",
    ))
}

fn filesystem_confined(place: &Place) -> Outcome {
    find(&["bwrap"]).ok_or("no bubblewrap was found")?;
    let file = place.file("comet.txt");
    std::fs::write(&file, "It comes back in 2061.\n").unwrap();
    let files = place.files.path();
    let home = &place.home;
    let table = place.npm("mcp-server-filesystem")
        + &format!("args = [{files:?}]\nsandbox = {{ read_only = [{files:?}, {home:?}] }}\n");
    let calls = vec![("read_text_file", json!({ "path": file }))];
    Ok(place.case(table, calls, "It comes back in 2061."))
}

fn memory(place: &Place) -> Outcome {
    let environment = format!("env = {{ MEMORY_FILE_PATH = {:?} }}\n", place.file("memory.jsonl"));
    let entity =
        json!({ "name": "Halley", "entityType": "comet", "observations": ["seen in 1986"] });
    let calls =
        vec![("create_entities", json!({ "entities": [entity] })), ("read_graph", json!({}))];
    Ok(place.case(place.npm("mcp-server-memory") + &environment, calls, "seen in 1986"))
}

fn sequential_thinking(place: &Place) -> Outcome {
    let thought = json!({
        "thought": "Count the stars.", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false,
    });
    let table = place.npm("mcp-server-sequential-thinking");
    Ok(place.case(table, vec![("sequentialthinking", thought)], "thoughtHistoryLength"))
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

fn postgres(place: &Place) -> Outcome {
    let calls = vec![("query", json!({ "sql": SUM }))];
    let environment = vec![("TEST_DATABASE_URL", database())];
    let case = Case { environment, ..place.case(postgres_table(place), calls, PRODUCT) };
    Ok(case)
}

fn postgres_writing(place: &Place) -> Outcome {
    let case = postgres(place)?;
    let table = case.table
        + "default_tools_approval_mode = \"prompt\"
";
    let calls = vec![("query", json!({ "sql": adversary::ATTACK }))];
    Ok(Case { table, calls, ..case })
}

fn time(place: &Place) -> Outcome {
    let table = place.python("mcp-server-time");
    Ok(place.case(table, vec![("get_current_time", json!({ "timezone": "Etc/UTC" }))], "is_dst"))
}

fn git(place: &Place) -> Outcome {
    let made = Command::new("git").args(["init", "--quiet"]).arg(place.files.path()).status();
    assert!(made.unwrap().success());
    std::fs::write(place.file("new.txt"), "new").unwrap();
    let table = place.python("mcp-server-git")
        + &format!("args = [\"--repository\", {:?}]\n", place.files.path());
    Ok(place.case(
        table,
        vec![("git_status", json!({ "repo_path": place.files.path() }))],
        "new.txt",
    ))
}

fn sqlite(place: &Place) -> Outcome {
    let table = place.python("mcp-server-sqlite")
        + &format!("args = [\"--db-path\", {:?}]\n", place.file("data.db"));
    Ok(place.case(table, vec![("read_query", json!({ "query": SUM }))], PRODUCT))
}

fn motherduck(place: &Place) -> Outcome {
    let table = place.python("mcp-server-motherduck")
        + "args = [\"--db-path\", \":memory:\", \"--read-write\"]\n";
    let calls = vec![("execute_query", json!({ "sql": SUM }))];
    // It calls the tool destructive, and so a person is asked.
    Ok(Case { questions: approval(), ..place.case(table, calls, PRODUCT) })
}

fn alchemy(place: &Place) -> Outcome {
    let address = format!("sqlite:///{}", place.file("data.db").display());
    let table = place.python("mcp-alchemy") + &format!("env = {{ DB_URL = {address:?} }}\n");
    Ok(place.case(table, vec![("execute_query", json!({ "query": SUM }))], PRODUCT))
}

/// The agent that answers questions to databases; who wrote a statement is ours, so nobody is asked.
const ANALYST: &str = "agent = \"analyst\"\ndefault_tools_effect = \"read_only\"\n";

fn sqlite_analyst(place: &Place) -> Outcome {
    let table = place.python("mcp-server-sqlite")
        + &format!("args = [\"--db-path\", {:?}]\n", place.file("shop.db"));
    Ok(place.case(table + ANALYST, Vec::new(), ""))
}

fn alchemy_analyst(place: &Place) -> Outcome {
    let address = format!("sqlite:///{}", place.file("shop.db").display());
    let table = place.python("mcp-alchemy") + &format!("env = {{ DB_URL = {address:?} }}\n");
    Ok(place.case(table + ANALYST, Vec::new(), ""))
}

fn motherduck_analyst(place: &Place) -> Outcome {
    let table = place.python("mcp-server-motherduck")
        + &format!("args = [\"--db-path\", {:?}]\n", place.file("shop.duckdb"));
    Ok(place.case(table + ANALYST, Vec::new(), ""))
}

fn postgres_analyst(place: &Place) -> Outcome {
    let case = postgres(place)?;
    Ok(Case { table: case.table + ANALYST, calls: Vec::new(), ..case })
}

fn playwright(place: &Place) -> Outcome {
    let browser = find(&["chromium", "chromium-browser", "google-chrome"]);
    let browser = browser.ok_or("no browser was found")?;
    let browser = browser.to_str().unwrap();
    let mut args = vec!["--headless", "--isolated", "--executable-path", browser];
    // A browser does not confine its pages as root.
    if nix::unistd::geteuid().is_root() {
        args.push("--no-sandbox");
    }
    let table = place.npm("playwright-mcp") + &format!("args = {args:?}\n");
    let calls = vec![("browser_navigate", json!({ "url": page() }))];
    // As above.
    Ok(Case { questions: approval(), ..place.case(table, calls, "The visit") })
}

/// Serves a page for as long as the program runs, and returns its address.
fn page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let page = Html("<title>The visit</title><h1>A comet swings by</h1>");
    let router = Router::new().route("/", get(move || async move { page }));
    tokio::spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        axum::serve(listener, router).await.unwrap();
    });
    format!("http://{address}/")
}

/// The approval that a call waits for.
fn approval() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![("approval", vec!["--approve"])]
}

/// Finds the first of some programs that is installed.
fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = |name| std::env::split_paths(&path).map(|at| at.join(name)).find(|at| at.exists());
    names.iter().find_map(found)
}
