//! A machine with files, notes and a database to ask, and a team that reads and notes.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion_test_database::TestDatabase;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use crate::postgres::server;
use crate::world::{World, approved, select};

/// Where threads and teams are kept.
#[derive(Clone, Copy, Debug)]
pub enum Kept {
    Sqlite,
    Postgres,
}

pub const BOTH: [Kept; 2] = [Kept::Sqlite, Kept::Postgres];

const SERVERS: &str = r#"
[mcp_servers.files]
command = "perihelion"
args = ["mcp", "files", "--root", "documents"]
default_tools_effect = "read_only"
open_world = false

[mcp_servers.notes]
command = "perihelion"
args = ["mcp", "notes", "--file", "notes.jsonl"]
open_world = false

[mcp_servers.shop]
command = "perihelion"
args = ["mcp", "sql", "--database", "sqlite:shop.db"]
agent = "tools"
open_world = false
"#;

/// A world, and the database that it keeps threads in.
pub struct Office {
    pub world: World,
    database: Option<TestDatabase>,
}

impl Office {
    /// Starts the service over its world; returns it with its address.
    pub async fn serve(&self) -> (Child, String) {
        let mut server = self.world.start(&["serve", "--addr", "127.0.0.1:0"]);
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let url = loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if let Some((_, address)) = line.split_once("at http://") {
                break format!("http://{}", address.trim());
            }
        };
        // Nobody may stop reading what it says.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        (server, url)
    }

    pub async fn open(kept: Kept, script: Script) -> Self {
        let mut world = World::new(script).await;
        world.write("mcp-servers.toml", SERVERS);
        let shop = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(world.path("shop.db"))
            .create_if_missing(true);
        let shop = sqlx::SqlitePool::connect_with(shop).await.unwrap();
        sqlx::raw_sql("CREATE TABLE sale (amount INTEGER); INSERT INTO sale VALUES (40), (2)")
            .execute(&shop)
            .await
            .unwrap();
        shop.close().await;
        let database = match kept {
            Kept::Sqlite => {
                world.set("DATABASE_URL", "sqlite:threads.db");
                None
            }
            Kept::Postgres => {
                let database = server().await.fresh().await;
                world.set("DATABASE_URL", &database.url);
                Some(database)
            }
        };
        Self { world, database }
    }

    /// Opens an office that has the team already.
    pub async fn with_team(kept: Kept, script: Script) -> Self {
        let office = Self::open(kept, script).await;
        office.import(&design()).await;
        office
    }

    pub async fn import(&self, design: &Value) {
        self.world.write("team.json", &design.to_string());
        self.world.run(&["teams", "import", "team.json"]).await.code(0);
    }

    /// Makes people approve each note.
    pub fn gate(&self) {
        let gate = "\n[mcp_servers.notes.tools.append_note]\napproval_mode = \"prompt\"\n";
        self.world.write("mcp-servers.toml", &format!("{SERVERS}{gate}"));
    }

    /// Has one more server, by its table.
    pub fn add_server(&self, table: &str) {
        self.world.write("mcp-servers.toml", &format!("{SERVERS}\n{table}"));
    }

    /// Returns the address of the database.
    pub fn url(&self) -> String {
        match &self.database {
            Some(database) => database.url.clone(),
            None => format!("sqlite:{}", self.world.path("threads.db").display()),
        }
    }

    /// Declares that anybody may have written what stands in the files.
    pub fn open_files(&self) {
        self.world.write(
            "mcp-servers.toml",
            &SERVERS.replacen("open_world = false", "open_world = true", 1),
        );
    }

    /// Returns the requests of an agent.
    pub fn asked(&self, agent: &str) -> usize {
        let requests = self.world.model.requests();
        let is_of = |role: &str| role == Role::Agent.as_str();
        requests
            .iter()
            .filter(|one| is_of(&one.role) && one.agent.as_deref() == Some(agent))
            .count()
    }

    /// Returns the notes that were taken.
    pub fn notes(&self) -> usize {
        self.world.read("notes.jsonl").lines().count()
    }
}

/// A team that reads files and takes notes.
pub fn design() -> Value {
    json!({
        "name": "research",
        "description": "Finds answers in the files and notes them.",
        "agents": [
            { "name": "reader", "role": "reader of files", "goal": "Finds the facts.", "servers": ["files"] },
            { "name": "keeper", "role": "keeper of notes", "goal": "Notes the facts.", "servers": ["notes"] },
        ],
    })
}

/// What a team's own supervisor sees of its reader, and no other supervisor.
pub const INSIDE: &str = "- reader: ";

/// The whole of a run: the supervisor above routes to the team, whose supervisor has the reader and then the keeper work.
pub fn working() -> Script {
    let supervisor = |agents: &[&str]| Rule::new(select(agents)).role(Role::Supervisor);
    let agent = |name: &str, reply: Reply| Rule::new(reply).role(Role::Agent).agent(name);
    let note = Reply::call("append_note", json!({ "text": "42" }));
    Script::new()
        .rule(supervisor(&["qa"]).contains(INSIDE).contains("agent=\"keeper\""))
        .rule(supervisor(&["keeper"]).contains(INSIDE).contains("agent=\"reader\""))
        .rule(supervisor(&["reader"]).contains(INSIDE))
        .rule(supervisor(&["qa"]).contains("<result number="))
        .rule(supervisor(&["team_research"]).contains("- team_research: "))
        .rule(
            agent("reader", Reply::call("read", json!({ "path": "a.txt" }))).after_tool_results(0),
        )
        .rule(agent("reader", Reply::text("a.txt says 42")))
        .rule(agent("keeper", note).after_tool_results(0))
        .rule(agent("keeper", Reply::text("It is noted.")))
        .rule(approved())
        .rule(Rule::new(Reply::text("It is 42 [1].")).role(Role::Qa))
}
