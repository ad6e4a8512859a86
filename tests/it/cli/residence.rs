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
/// Megabytes that opening the thread may take beyond those of a small one; its artifacts have twice as many.
const BEYOND: u64 = 32;

/// A thread whose answer hangs, and the most megabytes of the process that made it and of one that continues with it.
async fn measured(calls: Reply) -> (World, u64, u64) {
    let script = Script::new()
        .rule(Rule::new(select(&["mcp_agent_x"])).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(Rule::new(calls).role(Role::Agent).after_tool_results(0))
        .rule(Rule::new(Reply::text("All of it.")).role(Role::Agent))
        .rule(approved())
        .rule(Rule::new(Reply::hang()).role(Role::Qa));
    let world = World::new(script).await;
    world.write("mcp-servers.toml", &table("x", "swells", "default_tools_effect = \"read_only\""));
    let mut peaks = [0; 2];
    let makes = ["run", "Read it", "--thread", "large", "-q"];
    for (at, args) in [&makes[..], &["resume", "large", "-q"]].into_iter().enumerate() {
        let mut child = world.start(args);
        while world.asked(Role::Qa) == at {
            assert!(
                child.try_wait().unwrap().is_none(),
                "it ended before its answer was asked for"
            );
            tokio::task::yield_now().await;
        }
        peaks[at] = peak(&child);
        child.kill().await.unwrap();
    }
    (world, peaks[0], peaks[1])
}

/// S2.11, X1, X6
#[tokio::test]
async fn a_thread_of_large_artifacts_stays_within_its_memory() {
    let call = |number: u64| json!({ "says": 7, "number": number });
    let calls = (1..CALLS)
        .fold(Reply::call("echo", call(0)), |reply, number| reply.and_call("echo", call(number)));
    let (world, made, opened) = measured(calls).await;
    assert!(made < MOST, "{made} MB were resident, at most: {MOST}");
    let prompt = world.model.requests();
    let refused = "could not be kept: the artifacts of this thread have";
    assert!(prompt.iter().any(|one| one.contains(refused)), "the bound was not reached");

    // What they hold stays where it is kept until it is wanted.
    let (_, _, small) = measured(Reply::call("echo", json!({ "says": 0 }))).await;
    let most = small + BEYOND;
    assert!(opened < most, "{opened} MB were resident, at most: {most}");
}

/// Returns the most megabytes that a process ever had resident.
fn peak(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id().unwrap())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
}
