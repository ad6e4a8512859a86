//! A folder of files, a librarian to ask, a scripted model, and a database.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use perihelion::config::{Overrides, Settings};
use perihelion::ids::ThreadId;
use perihelion::llm::Role;
use perihelion::llm::scripted::{
    RecordedRequest, Reply, Rule, Script, ScriptedModel, ScriptedServer,
};
use perihelion::runtime::{Answer, Error, Graphs, Runtime};
use perihelion::swarm::GRAPH;
use perihelion_test_database::TestDatabase;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::librarian;
use crate::postgres::server;

/// The agent's name.
pub const AGENT: &str = "mcp_agent_shelf";

/// Where threads are kept.
#[derive(Clone, Copy, Debug)]
pub enum Kept {
    Sqlite,
    Postgres,
}

pub const BOTH: [Kept; 2] = [Kept::Sqlite, Kept::Postgres];

/// A thread and everything around it.
pub struct Library {
    pub model: ScriptedServer,
    directory: TempDir,
    url: String,
    thread: ThreadId,
    _database: Option<TestDatabase>,
}

impl Library {
    /// Opens a library with these files, on a database of its own.
    pub async fn open(kept: Kept, script: Script, files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let shelf = directory.path().join("shelf");
        std::fs::create_dir(&shelf).unwrap();
        for (name, text) in files {
            std::fs::write(shelf.join(name), text).unwrap();
        }
        let (url, database) = match kept {
            Kept::Sqlite => {
                (format!("sqlite:{}", directory.path().join("threads.db").display()), None)
            }
            Kept::Postgres => {
                let database = server().await.fresh().await;
                (database.url.clone(), Some(database))
            }
        };
        let library = Self {
            model: ScriptedModel::start(script).await.unwrap(),
            directory,
            url,
            thread: ThreadId::new(),
            _database: database,
        };
        library.serve("agent = \"librarian\"");
        library
    }

    /// Writes the servers file, with lines of the shelf's table.
    pub fn serve(&self, lines: &str) {
        let program = env!("CARGO_BIN_EXE_perihelion");
        let shelf = self.directory.path().join("shelf");
        let table = format!(
            "[mcp_servers.shelf]\ncommand = {program:?}\nargs = [\"mcp\", \"files\", \"--root\", {shelf:?}]\n\
             description = \"Files.\"\n{lines}\n"
        );
        std::fs::write(self.servers(), table).unwrap();
    }

    pub fn servers(&self) -> PathBuf {
        self.directory.path().join("mcp-servers.toml")
    }

    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Returns the command that asks the librarian, or continues the thread.
    fn librarian(&self, question: Option<&str>) -> Command {
        let test = std::env::current_exe().unwrap();
        let program = test.ancestors().nth(2).unwrap().join("examples/librarian");
        assert!(program.exists(), "build it with `cargo build --examples`: {}", program.display());
        let mut command = Command::new(program);
        command.arg(&self.url).arg(self.servers()).arg(self.thread.to_string()).args(question);
        self.surround(&mut command);
        command
    }

    fn surround(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.directory.path())
            .env("OPENAI_BASE_URL", self.model.url())
            .env("OPENAI_MODEL", "m")
            .env("PERIHELION_MODELS_MAX_RETRIES", "0")
            .env("PERIHELION_MODELS_PROTOCOL", "full")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    /// Asks, or continues, and returns the report.
    pub async fn run(&self, question: Option<&str>) -> Value {
        let mut command = self.librarian(question);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        report(&output)
    }

    /// Asks in a process that is going to be killed.
    pub fn begin(&self, question: &str) -> Child {
        self.librarian(Some(question)).spawn().unwrap()
    }

    /// Runs the program itself on the same database and servers.
    pub async fn perihelion(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perihelion"));
        command.arg("--database").arg(&self.url).arg("--servers").arg(self.servers());
        command.args(arguments).current_dir(self.directory.path());
        self.surround(&mut command);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// Runs the thread again, offline, with the librarian among the kinds.
    pub async fn replay(&self) -> perihelion::runtime::ReplayReport {
        let store = perihelion::checkpoint::open(&self.url).await.unwrap();
        let settings = Settings::load(Overrides::default(), None, &|_| None).unwrap();
        let kinds = Arc::new(perihelion::agents::kinds().with(librarian::kind()));
        let graph = Graphs::new().offline(&settings, &kinds, GRAPH, &store).unwrap().unwrap();
        let traces = perihelion::runtime::Traces::of(&store, &settings);
        let replayed = traces.replay(graph.as_ref(), self.thread, None).await;
        store.close().await;
        replayed.unwrap()
    }

    /// Opens a runtime on the thread's database, as another process would.
    pub async fn runtime(&self) -> Runtime {
        let model = self.model.url().to_owned();
        let env = |name: &str| match name {
            "OPENAI_BASE_URL" => Some(model.clone()),
            "PERIHELION_MODELS_PROTOCOL" => Some("full".to_owned()),
            "PATH" => std::env::var("PATH").ok(),
            _ => None,
        };
        librarian::open(&self.url, &self.servers(), &env).await.unwrap()
    }

    /// Answers the one open question.
    pub async fn answer(&self, text: &str) -> Result<(), Error> {
        let runtime = self.runtime().await;
        let answered = runtime.answer(self.thread, None, Answer::Message(text.into())).await;
        runtime.close().await;
        answered
    }

    /// Returns the requests of a stage.
    pub fn stage(&self, stage: &str) -> Vec<RecordedRequest> {
        let all = self.model.requests().into_iter();
        all.filter(|request| request.stage.as_deref() == Some(stage)).collect()
    }
}

fn report(output: &Output) -> Value {
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// A supervisor that sends the request to the shelf and finishes, a reflector that approves, a QA that answers.
pub fn script() -> Script {
    let decide = |agents: Value| {
        Reply::json(json!({
            "thought_process": "Thinking.", "plan": ["ask the shelf"], "selected_agents": agents,
            "tasks": [], "clarification": null,
        }))
    };
    Script::new()
        .rule(Rule::new(decide(json!(["qa"]))).role(Role::Supervisor).contains("<result number"))
        .rule(Rule::new(decide(json!([AGENT]))).role(Role::Supervisor))
        .rule(Rule::new(Reply::text("It is 42 [1].")).role(Role::Qa))
}

/// The answers of the librarian's model.
pub fn words() -> Rule {
    Rule::new(Reply::json(json!({ "words": "answer" }))).role(Role::Agent).stage("words")
}

/// Leaves the nullable key `gap` out.
pub fn quotation() -> Rule {
    let answer = json!({ "answer": "42", "quote": "The answer is 42.", "confidence": 0.9 });
    Rule::new(Reply::json(answer)).role(Role::Agent).stage("answer")
}

pub fn approved() -> Rule {
    let verdict = json!({ "status": "APPROVED", "refined_output": null, "feedback": null });
    Rule::new(Reply::json(verdict)).role(Role::Reflector)
}
