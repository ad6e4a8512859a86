//! Signals, crashes, endpoints that come back: nothing is lost, nothing happens twice.

use nix::sys::signal::Signal;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::json;

use crate::support::hostile::table;

use super::world::{SERVERS, World, ended, noting, reading, select, signal};

/// The script, with a QA that hangs in its first call.
fn hanging_at_the_end(script: Script) -> Script {
    super::world::first(Rule::new(Reply::hang()).role(Role::Qa).nth(1), script)
}

/// Calls until the QA of the scripts hangs: supervisor, agent twice, reflector, supervisor, QA.
const CALLS: usize = 6;

#[tokio::test]
async fn a_run_that_is_stopped_before_it_begins_prints_one_json_object() {
    let world = World::new(reading()).await;
    let log = format!("env = {{ START_LOG = {:?} }}", world.path("started"));
    world.write("mcp-servers.toml", &table("x", "never-initializes", &log));
    let child = world.start(&["run", "Hi", "--json"]);
    while world.read("started").is_empty() {
        tokio::task::yield_now().await;
    }
    signal(&child, Signal::SIGINT);
    let stopped = ended(child).await.code(130);
    assert_eq!(stopped.json()["error"]["type"], "stopped");
}

/// S1.03
#[tokio::test]
async fn the_first_ctrl_c_stores_finished_work_and_shows_how_to_continue() {
    for by in [Signal::SIGINT, Signal::SIGTERM] {
        let world = World::new(hanging_at_the_end(noting())).await;
        let child = world.start(&["run", "Note it", "--thread", "n", "--json"]);
        world.model.wait_for_requests(CALLS).await;
        signal(&child, by);
        let stopped = ended(child).await.code(1);
        assert_eq!(stopped.json()["status"], "stopped");
        let shown = world.run(&["threads", "show", "n", "--json"]).await.code(0).json();
        assert_eq!(
            (&shown["status"], &shown["runs"][0]["status"]),
            (&json!("stopped"), &json!("stopped"))
        );
        let thread = stopped.json()["thread_id"].as_str().unwrap().to_owned();
        let stopped = stopped.says("stopped. To continue, run: perihelion resume n");

        let done = world.run(&["resume", &thread]).await.code(0);
        assert_eq!(done.stdout, "It is noted.\n", "{stopped:?}");
        assert_eq!(world.read("notes.jsonl").lines().count(), 1);
        assert_eq!(world.model.requests().len(), CALLS + 1, "no call was made again but QA's");
    }
}

/// S1.03, X2
#[tokio::test]
async fn after_a_crash_another_process_takes_over_at_once_and_repeats_no_effect() {
    let world = World::new(hanging_at_the_end(noting())).await;
    let mut child = world.start(&["run", "Note it", "--thread", "n"]);
    world.model.wait_for_requests(CALLS).await;
    child.kill().await.unwrap();
    let list = world.run(&["threads", "--status", "busy", "--json"]).await.code(0).json();
    assert_eq!((&list[0]["status"], &list[0]["crashed"]), (&"crashed".into(), &true.into()));
    let show = world.run(&["threads", "show", "n"]).await.code(0);
    assert!(
        show.stdout.contains("crashed")
            && show.stdout.contains("to continue, run: perihelion resume")
    );

    let done = world.run(&["resume", "n", "-q"]).await.code(0);
    assert_eq!(done.stdout, "It is noted.\n");
    assert_eq!(world.read("notes.jsonl").lines().count(), 1);
    assert_eq!(world.model.requests().len(), CALLS + 1);
}

/// X2
#[tokio::test]
async fn an_outcome_left_unknown_by_a_crash_asks_a_person() {
    let test = std::env::current_exe().unwrap();
    let hostile = test.ancestors().nth(2).unwrap().join("examples/hostile_mcp_server");
    let script = || {
        Script::new()
            .rule(Rule::new(select(&["mcp_agent_x"])).role(Role::Supervisor).nth(1))
            .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
            .rule(
                Rule::new(Reply::call("die", serde_json::json!({})))
                    .role(Role::Agent)
                    .after_tool_results(0),
            )
            .rule(Rule::new(Reply::text("it is sent")).role(Role::Agent))
            .rule(super::world::approved())
            .rule(Rule::new(Reply::text("It is sent.")).role(Role::Qa))
    };
    for (answer, code) in [("done", 0), ("skip", 0), ("retry", 3)] {
        let world = World::new(script()).await;
        let table = format!("[mcp_servers.x]\ncommand = {hostile:?}\nargs = [\"plain\"]\n");
        world.write("mcp-servers.toml", &table);
        let run = world.run(&["run", "Send it", "--thread", "s"]).await.code(3);
        let run = run.says("outcome_unknown, mcp_agent_x").says("--outcome retry");
        run.says("The outcome of this x.die call is unknown");
        let mut args = vec!["resume", "s", "--outcome", answer, "-q"];
        if answer == "done" {
            args.extend(["--result", "number 7"]);
        }
        world.run(&args).await.code(code);
        if answer == "done" {
            let prompt = world.model.requests();
            assert!(prompt.iter().any(|one| one.role == "agent" && one.contains("number 7")));
        }
    }
}

#[tokio::test]
async fn a_second_writer_on_a_thread_receives_the_name_of_the_holder() {
    let world = World::new(hanging_at_the_end(reading())).await;
    let child = world.start(&["run", "What is it?", "--thread", "t", "-q"]);
    world.model.wait_for_requests(CALLS).await;
    let second = world.run(&["run", "And now?", "--thread", "t", "--json"]).await.code(1);
    assert_eq!(second.json()["error"]["type"], "failed");
    let pid = child.id().unwrap();
    second.says(&format!("process {pid} on ")).says("your question was not submitted");
    signal(&child, Signal::SIGINT);
    ended(child).await.code(1);
    // An unfinished run is to be resumed first, and then all continues.
    world.run(&["run", "And now?", "--thread", "t"]).await.code(2).says("resume it first");
    let done = world.run(&["resume", "t", "-q"]).await.code(0);
    assert_eq!(done.stdout, "It is 42 [1].\n");
}

#[tokio::test]
async fn an_unreachable_model_fails_the_run_and_the_thread_continues_when_it_is_back() {
    let mut world = World::new(reading()).await;
    let back = world.model.url().to_owned();
    // Bound and dropped: nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    world.set("OPENAI_BASE_URL", &format!("http://127.0.0.1:{port}/v1"));
    let run = world.run(&["run", "What is it?", "--thread", "t", "--json"]).await.code(1);
    let report = run.json();
    assert_eq!(report["status"], "failed");
    assert!(report["error"].as_str().unwrap().contains("cannot reach the model endpoint"));
    run.says("error[cli.run-failed]: cannot reach the model endpoint").says("perihelion resume");

    world.set("OPENAI_BASE_URL", &back);
    let done = world.run(&["resume", "t", "-q"]).await.code(0);
    assert_eq!(done.stdout, "It is 42 [1].\n");
    assert!(world.model.requests()[0].contains("What is it?"));
}

/// No server process outlives the program, however it ends.
#[tokio::test]
async fn servers_end_with_the_program_even_after_a_second_signal() {
    let test = std::env::current_exe().unwrap();
    let hostile = test.ancestors().nth(2).unwrap().join("examples/hostile_mcp_server");
    let script = Script::new()
        .rule(Rule::new(select(&["mcp_agent_x"])).role(Role::Supervisor))
        .rule(Rule::new(Reply::call("hang", serde_json::json!({}))).role(Role::Agent));
    let world = World::new(script).await;
    let mark = uuid::Uuid::new_v4().to_string();
    let table = format!(
        "[mcp_servers.x]\ncommand = {hostile:?}\nargs = [\"ignores-the-end\"]\nenv = {{ MARK = {mark:?} }}\n{SERVERS}"
    );
    world.write("mcp-servers.toml", &table);
    let mut child = world.start(&["run", "Send it", "--thread", "s"]);
    wait_for(&mut child, "calls x.hang").await;
    signal(&child, Signal::SIGINT);
    wait_for(&mut child, "press Ctrl-C again to stop now").await;
    signal(&child, Signal::SIGINT);
    assert_eq!(child.wait().await.unwrap().code(), Some(130));
    crate::support::hostile::assert_none_left(&mark).await;
    let show = world.run(&["threads", "show", "s"]).await.code(0);
    assert!(show.stdout.contains("crashed"), "{show:?}");
}

/// S1.03: such as a pager that is at its first page.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_second_ctrl_c_ends_a_run_whose_events_nobody_reads() {
    use nix::fcntl::{FcntlArg, fcntl};

    let world = World::new(hanging_at_the_end(reading())).await;
    let mut child = world.start(&["run", "What is it?", "--events"]);
    fcntl(child.stdout.as_ref().unwrap(), FcntlArg::F_SETPIPE_SZ(1)).unwrap();
    world.model.wait_for_requests(CALLS).await;
    signal(&child, Signal::SIGINT);
    wait_for(&mut child, "press Ctrl-C again to stop now").await;
    signal(&child, Signal::SIGINT);
    assert_eq!(child.wait().await.unwrap().code(), Some(130));
}

/// Reads standard error until some words were said.
async fn wait_for(child: &mut tokio::process::Child, words: &str) {
    use tokio::io::AsyncReadExt as _;
    let stderr = child.stderr.as_mut().unwrap();
    let mut output = Vec::new();
    while !String::from_utf8_lossy(&output).contains(words) {
        let mut piece = [0; 1024];
        let count = stderr.read(&mut piece).await.unwrap();
        assert!(count > 0, "never said: {words}\n{}", String::from_utf8_lossy(&output));
        output.extend_from_slice(&piece[..count]);
    }
}
