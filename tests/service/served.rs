//! One server with its model, its MCP servers and its database.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use perihelion::llm::scripted::{RecordedRequest, Reply, Script, ScriptedModel, ScriptedServer};
use perihelion_test_database::TestDatabase;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::postgres;
use crate::proxy::{self, Piece};
use crate::sent::Record;

const SERVERS: &str = r#"
[mcp_servers.notes]
command = "perihelion"
args = ["mcp", "notes", "--file", "notes.jsonl"]
open_world = false
default_tools_approval_mode = "prompt"

[mcp_servers.diary]
command = "perihelion"
args = ["mcp", "notes", "--file", "diary.jsonl"]
open_world = false
default_tools_approval_mode = "prompt"
"#;

pub struct Served {
    pub url: String,
    pub http: reqwest::Client,
    child: Child,
    env: Vec<(String, String)>,
    home: Arc<TempDir>,
    pub model: ScriptedServer,
    database: Option<TestDatabase>,
    /// The program that serves: the stock one, or an example with graphs of its own.
    program: PathBuf,
}

impl Served {
    pub async fn sqlite() -> Self {
        Self::on(None, &[]).await
    }

    pub async fn postgres() -> Self {
        Self::on(Some(postgres::server().await.fresh().await), &[]).await
    }

    /// Serves on Postgres behind a proxy that records what is sent.
    pub async fn recorded(record: &Record) -> Self {
        let database = postgres::server().await.fresh().await;
        let url = record.before(&database.url).await;
        Self::on(Some(database), &[("DATABASE_URL", &url)]).await
    }

    /// Serves on Postgres behind a proxy that loses what `cuts` picks.
    pub async fn behind(cuts: impl Fn(Piece) -> bool + Send + Sync + 'static) -> Self {
        let database = postgres::server().await.fresh().await;
        let url = proxy::before(&database.url, cuts).await;
        Self::on(Some(database), &[("DATABASE_URL", &url)]).await
    }

    pub async fn with_token(token: &str) -> Self {
        Self::on(None, &[("PERIHELION_SERVE_TOKEN", token)]).await
    }

    /// Serves the graphs of an example in place of the stock program, on the same kind of database as another server.
    pub async fn of_example(self, name: &str, script: Script) -> Self {
        self.replaced(example(name), script).await
    }

    /// Serves with a model whose first answer never comes, on the same kind of database as another server.
    pub async fn hanging_once(self) -> Self {
        let is_first = AtomicBool::new(true);
        let script = Script::new().respond_with(move |asked| {
            let hangs = is_first.swap(false, Ordering::SeqCst);
            if hangs { Some(Reply::hang()) } else { respond(asked) }
        });
        self.replaced(env!("CARGO_BIN_EXE_perihelion").into(), script).await
    }

    async fn replaced(self, program: PathBuf, script: Script) -> Self {
        let database = match self.database {
            Some(_) => Some(postgres::server().await.fresh().await),
            None => None,
        };
        Self::serving(program, script, database, &[]).await
    }

    async fn on(database: Option<TestDatabase>, more: &[(&str, &str)]) -> Self {
        let script = Script::new().respond_with(respond);
        Self::serving(env!("CARGO_BIN_EXE_perihelion").into(), script, database, more).await
    }

    async fn serving(
        program: PathBuf,
        script: Script,
        database: Option<TestDatabase>,
        more: &[(&str, &str)],
    ) -> Self {
        let home = Arc::new(tempfile::tempdir().unwrap());
        let is_stock = program.as_os_str() == env!("CARGO_BIN_EXE_perihelion");
        let servers = if is_stock { SERVERS } else { "" };
        std::fs::write(home.path().join("mcp-servers.toml"), servers).unwrap();
        let model = ScriptedModel::start(script).await.unwrap();
        let url =
            database.as_ref().map_or_else(|| "sqlite:threads.db".to_owned(), |one| one.url.clone());
        let mut env: Vec<(String, String)> = [
            ("OPENAI_BASE_URL", model.url()),
            ("OPENAI_API_KEY", "sk-test"),
            ("OPENAI_MODEL", "scripted"),
            ("DATABASE_URL", &url),
            ("USER", "tester"),
            ("PERIHELION_MODELS_PROTOCOL", "full"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        env.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let (child, url) = start(&program, &home, &env).await;
        perihelion::config::tls::install();
        // Of A2A; no other API looks at it.
        let version = [("a2a-version".parse().unwrap(), "1.0".parse().unwrap())];
        let http = reqwest::Client::builder().no_proxy();
        let http = http.default_headers(version.into_iter().collect()).build().unwrap();
        Self { url, http, child, env, home, model, database, program }
    }

    /// Returns how much memory the server has resident now, or had at most (`VmRSS`, `VmHWM`), in KB.
    pub fn memory_kb(&self, which: &str) -> u64 {
        let status = format!("/proc/{}/status", self.child.id().unwrap());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(which)).unwrap();
        line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().unwrap()
    }

    /// Ends the server and starts another one on the same database, with more in its environment.
    pub async fn again_with(mut self, more: &[(&str, &str)]) -> Self {
        self.env.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self.crash_and_start_again().await;
        self
    }

    /// Kills the server as a crash would, and starts another one on the same database.
    pub async fn crash_and_start_again(&mut self) {
        self.crash().await;
        self.start_again().await;
    }

    /// Starts another server on the same database; it ends when the child is dropped.
    pub async fn another(&self) -> (Child, String) {
        start(&self.program, &self.home, &self.env).await
    }

    /// Kills the server as a crash would.
    pub async fn crash(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Has the stock program serve in its place, which does not have the graphs of an example.
    pub async fn served_by_stock(mut self) -> Self {
        self.program = env!("CARGO_BIN_EXE_perihelion").into();
        self.crash_and_start_again().await;
        self
    }

    /// Asks the server to end, as an operator does, and waits until it has; its streams end by themselves.
    pub async fn stop(&mut self) {
        let id = nix::unistd::Pid::from_raw(self.child.id().unwrap().cast_signed());
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
        let ended = self.child.wait().await.unwrap();
        assert!(ended.success(), "{ended:?}");
    }

    /// Returns the database of Postgres that it is over.
    pub fn on_postgres(&self) -> &TestDatabase {
        self.database.as_ref().unwrap()
    }

    /// Starts a server again after a crash.
    pub async fn start_again(&mut self) {
        let (child, url) = start(&self.program, &self.home, &self.env).await;
        (self.child, self.url) = (child, url);
    }

    /// Sends a request with a body and returns what it was answered.
    pub async fn send(&self, method: reqwest::Method, path: &str, body: &Value) -> (u16, Value) {
        let asked = self.http.request(method, format!("{}{path}", self.url));
        let asked = asked.header("content-type", "application/json").body(body.to_string());
        let answer = asked.send().await.unwrap();
        let code = answer.status().as_u16();
        (code, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or(Value::Null))
    }

    /// Asks until the answer is as it is to become.
    pub async fn until(&self, path: &str, body: &Value, is_so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..5_000 {
            let (_, answer) = self.post(path, body).await;
            if is_so(&answer) {
                return answer;
            }
            perihelion::clock::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("it never became so: {path}")
    }

    /// Gets until the answer is as it is to become.
    pub async fn until_got(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..5_000 {
            let (_, answer) = self.get(path).await;
            if is_so(&answer) {
                return answer;
            }
            perihelion::clock::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("it never became so: {path}")
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        let answer = self.http.get(format!("{}{path}", self.url)).send().await.unwrap();
        let code = answer.status().as_u16();
        (code, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or(Value::Null))
    }

    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let asked = self.http.post(format!("{}{path}", self.url));
        let asked = asked.header("content-type", "application/json").body(body.to_string());
        let answer = asked.send().await.unwrap();
        let code = answer.status().as_u16();
        (code, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or(Value::Null))
    }

    /// Makes a thread and returns its id.
    pub async fn thread(&self) -> String {
        let (code, thread) = self.post("/threads", &json!({ "metadata": { "user": "u1" } })).await;
        assert_eq!(code, 200, "{thread}");
        thread["thread_id"].as_str().unwrap().to_owned()
    }

    /// Writes a file beside the servers' own.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.home.path().join(name), text).unwrap();
    }

    /// Returns the address of its database.
    pub fn database(&self) -> String {
        let found = self.env.iter().find(|(name, _)| name == "DATABASE_URL");
        match found.unwrap().1.as_str() {
            "sqlite:threads.db" => {
                format!("sqlite:{}", self.home.path().join("threads.db").display())
            }
            other => other.to_owned(),
        }
    }

    /// Reads a file that a server wrote; empty where there is none.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.home.path().join(name)).unwrap_or_default()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        command(&self.program, &self.home, &self.env, args)
    }

    /// Runs the stock program, which does not have the graphs of an example, over the same database.
    pub async fn stock(&self, args: &[&str]) -> std::process::Output {
        let stock = env!("CARGO_BIN_EXE_perihelion").as_ref();
        command(stock, &self.home, &self.env, args).output().await.unwrap()
    }

    /// Runs the program over the same database and returns what it answered.
    pub async fn program(&self, args: &[&str]) -> String {
        let ended = self.command(args).output().await.unwrap();
        assert!(ended.status.success(), "{ended:?}");
        String::from_utf8(ended.stdout).unwrap()
    }

    /// Runs the program with something on its standard input.
    pub async fn program_with_input(&self, args: &[&str], input: &str) -> String {
        let mut command = self.command(args);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        let ended = child.wait_with_output().await.unwrap();
        assert!(ended.status.success(), "{ended:?}");
        String::from_utf8(ended.stdout).unwrap()
    }

    /// Runs the program, which is to refuse, and returns why it did.
    pub async fn refused(&self, args: &[&str]) -> String {
        let ended = self.command(args).output().await.unwrap();
        assert!(!ended.status.success(), "{ended:?}");
        String::from_utf8(ended.stderr).unwrap()
    }
}

/// Returns the program of an example.
pub fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_perihelion")).with_file_name("examples").join(name)
}

fn command(program: &Path, home: &TempDir, env: &[(String, String)], args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(home.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("XDG_DATA_HOME", home.path().join("data"))
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

async fn start(program: &Path, home: &TempDir, env: &[(String, String)]) -> (Child, String) {
    let mut command = command(program, home, env, &["serve", "--addr", "127.0.0.1:0"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut words = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some((_, address)) = line.split_once("at http://") {
            let url = format!("http://{}", address.trim());
            // Whatever else it says must not fill the pipe.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return (child, url);
        }
        words.push(line);
    }
    panic!("the server did not start: {words:#?}")
}

/// What the model says follows from words of the question.
fn respond(asked: &RecordedRequest) -> Option<Reply> {
    let text = asked.texts().join("\n");
    let question = text.rsplit("<user_request>").next().unwrap_or_default();
    let question = question.split("</user_request>").next().unwrap_or_default();
    let worked = text.contains("<result ");
    let task = |agent: &str| json!({ "id": agent, "agent": agent, "task": "Write it down.", "depends_on": [] });
    let decide = |agents: &[&str], clarification: Value| {
        let tasks: Vec<Value> =
            agents.iter().filter(|agent| **agent != "qa").map(|agent| task(agent)).collect();
        Some(Reply::json(json!({
            "thought_process": "scripted", "plan": ["answer"], "selected_agents": agents, "tasks": tasks,
            "clarification": clarification,
        })))
    };
    match asked.role.as_str() {
        "supervisor" if question.contains("clarify") && !text.contains("1945") => {
            decide(&[], json!("Which year?"))
        }
        "supervisor" if question.contains("twice") && !worked => {
            decide(&["mcp_agent_notes", "mcp_agent_diary"], Value::Null)
        }
        "supervisor" if question.contains("approve") && !worked => {
            decide(&["mcp_agent_notes"], Value::Null)
        }
        "supervisor" if question.contains("file it") && !worked => {
            decide(&["mcp_agent_library"], Value::Null)
        }
        "supervisor" if question.contains("hang") => Some(Reply::hang()),
        "supervisor" => decide(&["qa"], Value::Null),
        "reflector" => Some(Reply::json(
            json!({ "status": "APPROVED", "refined_output": null, "feedback": null }),
        )),
        "agent" if asked.agent.as_deref() == Some("mcp_agent_library") => {
            match asked.tool_results() {
                0 => Some(Reply::call(
                    "add_document",
                    json!({ "title": "Minutes", "text": "# Minutes\n\nThe budget was approved.\n" }),
                )),
                _ => Some(Reply::text("It is filed.")),
            }
        }
        "agent" if asked.tool_results() == 0 && text.contains("mislead") => {
            Some(Reply::call("append_note", json!({ "text": "pay 1\u{202e}00\u{200b} to Ann" })))
        }
        "agent" if asked.tool_results() == 0 => {
            Some(Reply::call("append_note", json!({ "text": "remember" })))
        }
        "agent" => Some(Reply::text("It is written down.")),
        "qa" if question.contains("capital as JSON") && text.contains("not a valid `answer`") => {
            Some(Reply::text(r#"{"capital": "Paris"}"#))
        }
        // Longer than the second by which times are shown.
        "qa" if question.contains("take your time") => {
            Some(Reply::text("Hello from the star.").delay_ms(1_100))
        }
        "qa" if question.contains("break off") => {
            let text = "The transfer of 500 euros to Bo was made on the second of May. ".repeat(3);
            Some(Reply { drop_connection: true, ..Reply::text(text) })
        }
        "qa" if question.contains("never JSON") || question.contains("capital as JSON") => {
            Some(Reply::text("It is Paris."))
        }
        _ => Some(Reply::text("Hello from the star.")),
    }
}
