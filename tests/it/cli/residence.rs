//! How much memory a run takes whose tools answer with a great deal.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::json;
use tokio::process::Child;

use super::world::{World, approved, select};
use crate::support::hostile::table;

/// Calls of one answer, with seven megabytes each; their artifacts would take more than the bound of a thread.
const CALLS: u64 = 11;
/// Most megabytes that the process may ever have had resident.
const MOST: u64 = 600;
/// Most megabytes of one that opens the thread and continues with it.
const OPENED: u64 = 100;

/// S2.11, X6
#[tokio::test]
async fn a_thread_of_large_artifacts_stays_within_its_memory() {
    let call = |number: u64| json!({ "says": 7, "number": number });
    let calls = (1..CALLS)
        .fold(Reply::call("echo", call(0)), |reply, number| reply.and_call("echo", call(number)));
    let script = Script::new()
        .rule(Rule::new(select(&["mcp_agent_x"])).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(Rule::new(calls).role(Role::Agent).after_tool_results(0))
        .rule(Rule::new(Reply::text("All of it.")).role(Role::Agent))
        .rule(approved())
        .rule(Rule::new(Reply::hang()).role(Role::Qa));
    let world = World::new(script).await;
    world.write("mcp-servers.toml", &table("x", "swells", "default_tools_effect = \"read_only\""));
    let mut child = world.start(&["run", "Read it", "--thread", "large", "-q"]);
    while world.asked(Role::Qa) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its answer was asked for");
        tokio::task::yield_now().await;
    }
    let made = peak(&child);
    child.kill().await.unwrap();
    assert!(made < MOST, "{made} MB were resident, at most: {MOST}");
    let told = world.model.requests();
    let refused = "could not be kept: the artifacts of this thread have";
    assert!(told.iter().any(|one| one.contains(refused)), "the bound was not reached");

    // What they hold stays where it is kept until it is wanted.
    let mut child = world.start(&["resume", "large", "-q"]);
    while world.asked(Role::Qa) == 1 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its answer was asked for");
        tokio::task::yield_now().await;
    }
    let opened = peak(&child);
    child.kill().await.unwrap();
    assert!(opened < OPENED, "{opened} MB were resident, at most: {OPENED}");
    eprintln!("MEASURED {made} MB made, {opened} MB opened");
}

/// Returns the most megabytes that a process ever had resident.
fn peak(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id().unwrap())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
}
