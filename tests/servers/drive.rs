//! Servers through the whole star: scanned, listed, called, closed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use perihelion::clock;
use perihelion::llm::Role;
use perihelion::llm::scripted::{RecordedRequest, Reply, Rule, Script};
use serde_json::Value;
use tokio::process::Child;

use super::world::{World, approved, select};

/// Tools and what they are called with, in order.
pub type Calls = Vec<(&'static str, Value)>;

/// What is asked of a server.
pub struct Case {
    /// Its name in the servers file.
    pub server: &'static str,
    /// The lines of its table.
    pub table: String,
    /// The calls that the agent's model makes.
    pub calls: Calls,
    /// What the last call's result must contain.
    pub expects: String,
    /// What a person is asked, by kind, and the options that answer it.
    pub questions: Vec<(&'static str, Vec<&'static str>)>,
    /// Variables of the user's environment.
    pub environment: Vec<(&'static str, String)>,
    /// The server itself, where it is not the program that starts it.
    pub process: Option<Child>,
}

impl Case {
    pub fn agent(&self) -> String {
        format!("mcp_agent_{}", self.server)
    }
}

/// What was seen of servers.
#[derive(Default)]
pub struct Seen {
    pub protocols: BTreeSet<String>,
    /// By agent.
    pub tools: BTreeMap<String, Vec<String>>,
    /// From nothing to the list of all tools and the end of all processes.
    pub scanned: Duration,
    /// What was called and asked.
    pub result: Vec<&'static str>,
}

/// The supervisor chooses every server's agent, each agent makes its calls, the answer is given.
pub fn script(cases: &[Case]) -> Script {
    let agents: Vec<String> = cases.iter().map(Case::agent).collect();
    let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
    let mut script = Script::new()
        .rule(Rule::new(select(&agents)).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor));
    for case in cases {
        for (done, (tool, arguments)) in case.calls.iter().enumerate() {
            let call = Rule::new(Reply::call(*tool, arguments.clone())).role(Role::Agent);
            script = script.rule(call.agent(case.agent()).after_tool_results(done));
        }
    }
    script
        .rule(Rule::new(Reply::text("It is done.")).role(Role::Agent))
        .rule(approved())
        .rule(Rule::new(Reply::text("Done.")).role(Role::Qa))
}

/// Makes a machine with these servers, which are all asked.
pub async fn world(cases: &[Case]) -> World {
    world_of(cases, script(cases)).await
}

/// Makes a machine with these servers and another script.
pub async fn world_of(cases: &[Case], script: Script) -> World {
    let mut world = World::new(script).await;
    let tables =
        cases.iter().map(|case| format!("[mcp_servers.{}]\n{}\n", case.server, case.table));
    world.write("mcp-servers.toml", &tables.collect::<String>());
    for (name, value) in cases.iter().flat_map(|case| &case.environment) {
        world.set(name, value);
    }
    world
}

/// Scans, lists, calls and closes servers, all of them in one run.
pub async fn drive(mut cases: Vec<Case>) -> Seen {
    let world = world(&cases).await;
    let mut seen = scan(&world).await;

    let mut ended = world.run(&["run", "Do it.", "--thread", "t", "--quiet", "--json"]).await;
    for _ in 0..cases.iter().map(|case| case.questions.len()).sum() {
        let asked = ended.code(3).json();
        let open = &asked["interrupts"][0];
        let case = cases.iter().find(|case| open["agent"] == case.agent()).unwrap();
        let about = (&open["payload"]["tool"], &open["kind"]);
        let (kind, answer) = &case.questions[0];
        assert_eq!(about, (&case.calls[0].0.into(), &Value::from(*kind)), "{asked}");
        let id = open["id"].as_str().unwrap();
        let resume = [&["resume", "t", "--quiet", "--json", "--interrupt", id], answer.as_slice()];
        ended = world.run(&resume.concat()).await;
    }
    let report = ended.code(0).json();
    let finished = (&report["status"], &report["answer"]);
    assert_eq!(finished, (&"done".into(), &"Done.".into()), "{report}");

    for case in &mut cases {
        check(&world, case, &seen);
        let called = case.calls.iter().map(|(tool, _)| *tool);
        seen.result.extend(called.chain(case.questions.iter().map(|(kind, _)| *kind)));
        if let Some(process) = &mut case.process {
            process.kill().await.unwrap();
        }
    }
    seen
}

/// Checks that an agent's model was offered the server's tools and given the tool's own result.
fn check(world: &World, case: &Case, seen: &Seen) {
    let requests = world.model.requests();
    let is_of_agent = |request: &&RecordedRequest| {
        request.role == Role::Agent.as_str() && request.agent == Some(case.agent())
    };
    let after = |calls: usize| {
        let mut asked = requests.iter().filter(is_of_agent);
        let asked = asked.find(|request| request.tool_results() == calls);
        asked.unwrap_or_else(|| panic!("{} was not asked after {calls} calls", case.agent()))
    };
    let available = names(&after(0).body["tools"], "/function/name");
    let tools = &seen.tools[&case.agent()];
    let is_available = |tool: &String| available.contains(&tool.as_str());
    assert!(tools.iter().all(is_available), "of {tools:?} are offered: {available:?}");
    let result = after(case.calls.len()).last_text();
    assert!(result.contains(&case.expects), "missing: {}\n{result}", case.expects);
}

/// Starts servers for the first time, lists and pins their tools, and closes them.
pub async fn scan(world: &World) -> Seen {
    let started = clock::monotonic();
    let listed = world.run(&["agents", "--refresh", "--json", "--log", "debug"]).await.code(0);
    let scanned = started.elapsed();
    // What Python servers say when they are not let end in peace.
    assert!(!listed.stderr.contains("Traceback"), "{}", listed.stderr);
    let listed = listed.json();
    assert_eq!(listed["failed"], serde_json::json!([]), "{listed}");
    let mut seen = Seen { scanned, ..Seen::default() };
    for agent in listed["agents"].as_array().unwrap() {
        assert_eq!(agent["rejected"], serde_json::json!([]), "{agent}");
        let tools: Vec<String> =
            names(&agent["tools"], "/name").iter().map(ToString::to_string).collect();
        assert!(world.read("mcp-servers.lock").contains(&tools[0]), "its definitions are pinned");
        seen.protocols.insert(agent["protocol_version"].as_str().unwrap().to_owned());
        seen.tools.insert(agent["name"].as_str().unwrap().to_owned(), tools);
    }
    seen
}

fn names<'a>(list: &'a Value, at: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().filter_map(|one| one.pointer(at)?.as_str()).collect()
}
