//! One server through the whole star: scanned, listed, called, closed.

use std::time::Duration;

use perihelion::clock;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
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

/// What was seen of it.
pub struct Seen {
    pub protocol: String,
    pub tools: Vec<String>,
    /// From nothing to the list of its tools and the end of its process.
    pub scanned: Duration,
    pub result: String,
}

/// The supervisor chooses the server's agent, the agent makes its calls, the answer is given.
pub fn script(server: &str, calls: &Calls) -> Script {
    let agent = format!("mcp_agent_{server}");
    let mut script = Script::new()
        .rule(Rule::new(select(&[&agent])).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor));
    for (done, (tool, arguments)) in calls.iter().enumerate() {
        let call = Reply::call(*tool, arguments.clone());
        script = script.rule(Rule::new(call).role(Role::Agent).after_tool_results(done));
    }
    script
        .rule(Rule::new(Reply::text("It is done.")).role(Role::Agent))
        .rule(approved())
        .rule(Rule::new(Reply::text("Done.")).role(Role::Qa))
}

/// Scans, lists, calls and closes a server.
pub async fn drive(case: Case) -> Seen {
    let mut world = World::new(script(case.server, &case.calls)).await;
    world.write("mcp-servers.toml", &format!("[mcp_servers.{}]\n{}", case.server, case.table));
    for (name, value) in &case.environment {
        world.set(name, value);
    }

    let mut seen = scan(&world).await;

    let mut ended = world.run(&["run", "Do it.", "--thread", "t", "--quiet", "--json"]).await;
    for (kind, answer) in &case.questions {
        let asked = ended.code(3).json();
        let open = asked["interrupts"].as_array().unwrap();
        assert_eq!((open.len(), &open[0]["kind"]), (1, &Value::from(*kind)), "{asked}");
        assert_eq!(open[0]["payload"]["tool"], case.calls[0].0, "{asked}");
        let resume = [&["resume", "t", "--quiet", "--json"], answer.as_slice()].concat();
        ended = world.run(&resume).await;
    }
    let report = ended.code(0).json();
    assert_eq!(
        (&report["status"], &report["answer"]),
        (&"done".into(), &"Done.".into()),
        "{report}"
    );

    let requests = world.model.requests();
    let of_agent = |calls: usize| {
        let mut of_agent = requests.iter().filter(|request| request.role == Role::Agent.as_str());
        of_agent
            .find(|request| request.tool_results() == calls)
            .unwrap_or_else(|| panic!("{report}"))
    };
    let offered = names(&of_agent(0).body["tools"], "/function/name");
    let listed = |tool: &String| offered.contains(&tool.as_str());
    assert!(seen.tools.iter().all(listed), "of {:?} are offered: {offered:?}", seen.tools);
    let result = of_agent(case.calls.len()).last_text();
    assert!(result.contains(&case.expects), "missing: {}\n{result}", case.expects);
    let called: Vec<&str> = case.calls.iter().map(|(tool, _)| *tool).collect();
    let asked: Vec<&str> = case.questions.iter().map(|(kind, _)| *kind).collect();
    seen.result = [called, asked].concat().join(", ");
    if let Some(mut process) = case.process {
        process.kill().await.unwrap();
    }
    seen
}

/// Starts a server for the first time, lists and pins its tools, and closes it.
pub async fn scan(world: &World) -> Seen {
    let started = clock::monotonic();
    let listed = world.run(&["agents", "--refresh", "--json"]).await.code(0).json();
    let scanned = started.elapsed();
    assert_eq!(listed["failed"], serde_json::json!([]), "{listed}");
    let agent = &listed["agents"][0];
    assert_eq!(agent["rejected"], serde_json::json!([]), "{agent}");
    let tools: Vec<String> =
        names(&agent["tools"], "/name").iter().map(ToString::to_string).collect();
    assert!(world.read("mcp-servers.lock").contains(&tools[0]), "its definitions are pinned");
    let protocol = agent["protocol_version"].as_str().unwrap().to_owned();
    Seen { protocol, tools, scanned, result: String::new() }
}

fn names<'a>(list: &'a Value, at: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().filter_map(|one| one.pointer(at)?.as_str()).collect()
}
