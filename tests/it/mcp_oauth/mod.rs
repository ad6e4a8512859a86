//! Logins to MCP servers over HTTP: by the binary, as a person makes them, and what the pool does with them.

mod lives;
mod logins;
mod site;

use std::path::Path;

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::mcp::{
    CallContext, Error, Login, Logins, Pool, PoolOptions, ServersFile, ToolHost as _, ToolOutcome,
};
use serde_json::{Map, json};
use site::{CLIENT_SECRET, Site};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use crate::cli::world::{Ended, World, approved, ended, select};

/// Begins the name of whatever the site gives out; none of it may show.
const CANARY: &str = "canary-oauth-";

fn servers(url: &str, more: &str) -> String {
    format!("[mcp_servers.tracker]\nurl = {url:?}\n{more}")
}

/// A machine whose one agent is on the site.
async fn world(site: &Site, script: Script) -> World {
    let world = World::new(script).await;
    world.write("mcp-servers.toml", &servers(&site.url, ""));
    world
}

/// The agent greets; QA says what came of it.
fn greeting() -> Script {
    Script::new()
        .rule(Rule::new(select(&["mcp_agent_tracker"])).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(Rule::new(Reply::call("greet", json!({}))).role(Role::Agent).after_tool_results(0))
        .rule(Rule::new(Reply::text("greeted")).role(Role::Agent))
        .rule(approved())
        .rule(Rule::new(Reply::text("It was greeted [1].")).role(Role::Qa))
}

/// A `perihelion agents login` that waits for the browser.
struct Waiting {
    child: Child,
    address: String,
    output: BufReader<tokio::process::ChildStderr>,
}

impl Waiting {
    async fn begin(world: &World, more: &[&str]) -> Self {
        let mut child = world.start(&[&["agents", "login", "tracker"], more].concat());
        let mut output = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("http") {
            line.clear();
            assert_ne!(
                output.read_line(&mut line).await.unwrap(),
                0,
                "it ended without an address"
            );
        }
        Self { child, address: line.trim().to_owned(), output }
    }

    /// Does what a browser would, and returns the page at the end.
    async fn visit(&self) -> (u16, String) {
        visit(&self.address).await
    }

    async fn end(mut self) -> Ended {
        let mut rest = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut self.output, &mut rest).await.unwrap();
        let ended = ended(self.child).await;
        Ended { stderr: String::from_utf8(rest).unwrap(), ..ended }
    }
}

async fn visit(address: &str) -> (u16, String) {
    perihelion::config::tls::install();
    let answer = reqwest::get(address).await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Logs in with the binary and returns what it said.
async fn log_in(world: &World) -> Ended {
    let waiting = Waiting::begin(world, &[]).await;
    assert_eq!(waiting.visit().await.0, 200);
    waiting.end().await.code(0)
}

/// Where the logins of a machine stand.
fn kept(world: &World) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(world.path("data/perihelion/logins")).into_iter().flatten();
    let paths = files.map(|file| file.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect()
}

fn pool(url: &str, more: &str, logins: &Path) -> Pool {
    let env = |name: &str| (name == "SECRET").then(|| CLIENT_SECRET.to_owned());
    let file = ServersFile::parse("f".as_ref(), &servers(url, more), &env).unwrap();
    let logins = Some(Logins::new(logins.to_owned()));
    Pool::new(file, PoolOptions { logins, ..PoolOptions::default() })
}

async fn call(pool: &Pool, tool: &str) -> Result<ToolOutcome, Error> {
    pool.call("tracker", tool, Map::new(), CallContext::default()).await
}

/// Visits the address of a login and finishes it.
async fn finish(login: Login) -> Result<perihelion::mcp::LoggedIn, Error> {
    visit(login.address()).await;
    login.finish(std::time::Duration::from_secs(20)).await
}
