//! A shop's database, an analyst to ask, a scripted model, and a place for threads.

use std::process::{Child, Command, Output, Stdio};

use perihelion::llm::Role;
use perihelion::llm::scripted::{
    RecordedRequest, Reply, Rule, Script, ScriptedModel, ScriptedServer,
};
use perihelion_test_database::TestDatabase;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tempfile::TempDir;

pub use crate::script::*;
use crate::support::postgres::server;

/// The agent's name.
pub const AGENT: &str = "mcp_agent_shop";
/// A value that stands only in rows that no model may see.
pub const CANARY: &str = "canary-7731";

const SHOP: &str = "
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers(id), total REAL NOT NULL, ordered_at TEXT NOT NULL);
    CREATE TABLE lines (order_id INTEGER NOT NULL REFERENCES orders(id), line INTEGER NOT NULL, product TEXT NOT NULL, PRIMARY KEY (order_id, line));
    INSERT INTO customers VALUES (1, 'Ada', 'Norway'), (2, 'Bob', 'Chile'), (3, 'Cy', 'Norway');
    INSERT INTO orders VALUES (1, 1, 100, '2024-01-05'), (2, 1, 50, '2024-02-05'), (3, 2, 40, '2024-02-07'), (4, 3, 10.5, '2024-03-01');
    INSERT INTO lines VALUES (1, 1, 'cake'), (1, 2, 'tea'), (2, 1, 'cake'), (3, 1, 'tea'), (4, 1, 'canary-7731');";

/// Where threads are kept.
#[derive(Clone, Copy, Debug)]
pub enum Kept {
    Sqlite,
    Postgres,
}

pub const BOTH: [Kept; 2] = [Kept::Sqlite, Kept::Postgres];

/// A thread and everything around it.
pub struct Shop {
    pub model: ScriptedServer,
    directory: TempDir,
    url: String,
    _database: Option<TestDatabase>,
}

impl Shop {
    /// Opens a shop; `arguments` are those of its SQL server.
    pub async fn open(kept: Kept, script: Script, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("shop.db");
        let options = SqliteConnectOptions::new().filename(&data).create_if_missing(true);
        let mut connection: SqliteConnection = options.connect().await.unwrap();
        sqlx::raw_sql(SHOP).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let (url, database) = match kept {
            Kept::Sqlite => {
                (format!("sqlite:{}", directory.path().join("threads.db").display()), None)
            }
            Kept::Postgres => {
                let database = server().await.fresh().await;
                (database.url.clone(), Some(database))
            }
        };
        let program = env!("CARGO_BIN_EXE_perihelion");
        let mut all = vec!["mcp", "sql", "--database", data.to_str().unwrap()];
        all.extend(arguments);
        let table = format!(
            "[mcp_servers.shop]\ncommand = {program:?}\nargs = {all:?}\ndescription = \"The shop's orders.\"\n\
             agent = \"analyst\"\ndefault_tools_effect = \"read_only\"\n"
        );
        std::fs::write(directory.path().join("mcp-servers.toml"), table).unwrap();
        let model = ScriptedModel::start(script).await.unwrap();
        Self { model, directory, url, _database: database }
    }

    /// Changes the shop's database.
    pub async fn change(&self, sql: &'static str) {
        let options = SqliteConnectOptions::new().filename(self.directory.path().join("shop.db"));
        let mut connection: SqliteConnection = options.connect().await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Writes a file beside the servers file.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).unwrap();
    }

    /// Gives the shop a file with what is known of its tables.
    pub fn know(&self, text: &str) {
        self.write("shop.yaml", text);
        let servers = self.directory.path().join("mcp-servers.toml");
        let table = std::fs::read_to_string(&servers).unwrap();
        std::fs::write(servers, format!("{table}knowledge = \"shop.yaml\"\n")).unwrap();
    }

    /// Makes people approve each statement.
    pub fn gate(&self) {
        let servers = self.directory.path().join("mcp-servers.toml");
        let table = std::fs::read_to_string(&servers).unwrap();
        let gate = "tools.query.approval_mode = \"prompt\"\n";
        std::fs::write(servers, format!("{table}{gate}")).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perihelion"));
        command
            .arg("--database")
            .arg(&self.url)
            .arg("--servers")
            .arg(self.directory.path().join("mcp-servers.toml"))
            .args(arguments)
            .current_dir(self.directory.path())
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
        command
    }

    pub async fn perihelion(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// Asks on the thread `t` and returns the report, whatever the exit code.
    pub async fn ask(&self, question: &str) -> Value {
        report(
            &self.perihelion(&["run", question, "--thread", "t", "--json", "--include-data"]).await,
        )
    }

    /// Continues the thread `t`, with an answer where one is open.
    pub async fn resume(&self, answer: Option<&str>) -> Value {
        let mut arguments = vec!["resume", "t", "--json", "--include-data"];
        if let Some(answer) = answer {
            arguments.extend(["--message", answer]);
        }
        report(&self.perihelion(&arguments).await)
    }

    /// Asks in a process that is going to be killed.
    pub fn begin(&self, question: &str) -> Child {
        self.command(&["run", question, "--thread", "t", "--json"]).spawn().unwrap()
    }

    /// Returns the requests of a stage.
    pub fn stage(&self, stage: &str) -> Vec<RecordedRequest> {
        let all = self.model.requests().into_iter();
        all.filter(|request| request.stage.as_deref() == Some(stage)).collect()
    }

    /// Returns the stages that asked a model, in order, each once where it stands in a row.
    pub fn stages(&self) -> Vec<String> {
        let mut stages: Vec<String> =
            self.model.requests().into_iter().filter_map(|request| request.stage).collect();
        stages.dedup();
        stages
    }
}

fn report(output: &Output) -> Value {
    let printed = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// A supervisor that sends the request to the shop and finishes, a reflector that approves, a QA that answers.
pub fn script() -> Script {
    script_of(Script::new())
}

/// The same with a rule before them.
pub fn script_after(first: Rule) -> Script {
    script_of(Script::new().rule(first))
}

fn script_of(script: Script) -> Script {
    let decide = |agents: Value| {
        Reply::json(json!({
            "thought_process": "Thinking.", "plan": ["ask the shop"], "selected_agents": agents,
            "tasks": [], "clarification": null,
        }))
    };
    let approved = json!({ "status": "APPROVED", "refined_output": null, "feedback": null });
    script
        .rule(Rule::new(decide(json!(["qa"]))).role(Role::Supervisor).contains("<result number"))
        .rule(Rule::new(decide(json!([AGENT]))).role(Role::Supervisor))
        .rule(Rule::new(Reply::text("Here it is [1].")).role(Role::Qa))
        .rule(review(true))
        .rule(Rule::new(Reply::json(approved)).role(Role::Reflector))
}
