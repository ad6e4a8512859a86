//! Runs that go well, and what they print where.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};

use super::world::{World, answering, reading, select};
use crate::support::gateway::Gateway;

/// S1.13
#[tokio::test]
async fn standard_output_carries_the_answer_alone_and_standard_error_the_progress() {
    let world = World::new(reading()).await;
    let run = world.run(&["run", "What is it?"]).await.code(0);
    assert_eq!(run.stdout, "It is 42 [1].\n");
    let run = run
        .says("starting mcp_agent_files")
        .says("calls files.read")
        .says("review 1 of 3: APPROVED");
    run.says("source [1] files.read").says("done in 5 steps");
}

/// The whole star over the other wires: JSON decisions, a tool loop, verdicts and a streamed answer.
#[tokio::test]
async fn endpoints_with_different_protocols_run_the_same_star() {
    for api in ["anthropic", "gemini"] {
        let mut world = World::new(reading()).await;
        world.set("PERIHELION_MODELS_API", api);
        let gateway = Gateway::before(world.model.url()).await;
        world.set("OPENAI_BASE_URL", &gateway.url(api));
        let run = world.run(&["run", "What is it?", "-q"]).await.code(0);
        assert_eq!(run.stdout, "It is 42 [1].\n", "{api}");
        assert_eq!(gateway.sent().len(), world.model.requests().len());
    }
}

#[tokio::test]
async fn a_quiet_run_prints_only_the_answer() {
    let world = World::new(reading()).await;
    let run = world.run(&["run", "--quiet", "What is it?"]).await.code(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("It is 42 [1].\n", ""));
}

#[tokio::test]
async fn a_run_does_not_need_the_stack_of_the_main_thread() {
    let world = World::new(reading()).await;
    let run = world.run_with_a_small_stack(&["run", "What is it?", "-q"]).await.code(0);
    assert_eq!(run.stdout, "It is 42 [1].\n");
}

/// S2.09
#[tokio::test]
async fn with_json_there_is_exactly_one_object_with_the_contracts_keys() {
    let world = World::new(reading()).await;
    let run = world.run(&["run", "What is it?", "--json", "--thread", "mine"]).await.code(0);
    let report = run.json();
    let keys: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
    let wanted = [
        "thread_id",
        "run_id",
        "status",
        "answer",
        "data",
        "results",
        "citations",
        "planner",
        "interrupts",
        "finish_reason",
        "usage",
        "steps",
        "metadata",
    ];
    assert_eq!(keys, wanted);
    assert_eq!(report["status"], "done");
    assert_eq!(report["answer"], "It is 42 [1].");
    assert_eq!(report["results"][0]["agent"], "mcp_agent_files");
    assert_eq!(report["citations"][0]["source"], "files.read");
    assert!(report["usage"]["input_tokens"].as_u64().unwrap() > 0);
    assert_eq!(report["steps"], 5);
    assert_eq!(report["planner"]["order"], serde_json::json!(["mcp_agent_files"]));

    // A name is mapped by UUIDv5 and kept as the title.
    let list = world.run(&["threads", "list", "--json"]).await.code(0).json();
    assert_eq!(list[0]["thread_id"], report["thread_id"]);
    assert_eq!(list[0]["title"], "mine");
    assert_eq!(report["thread_id"].as_str().unwrap().chars().nth(14), Some('5'));
}

/// S2.01
#[tokio::test]
async fn the_question_can_be_read_from_standard_input_and_the_context_from_options() {
    let world = World::new(answering()).await;
    let args = ["run", "-", "--context", "region=EU", "--context", "note=a=b", "-q"];
    world.run_with_input(&args, "Who goes there?\n").await.code(0);
    let asked = &world.model.requests()[0];
    assert!(asked.contains("Who goes there?"));
    assert!(asked.contains("<entry key=\"region\">EU</entry>"));
    assert!(asked.contains("<entry key=\"note\">a=b</entry>"));
}

#[tokio::test]
async fn a_named_thread_remembers_earlier_questions() {
    let world = World::new(answering()).await;
    world.run(&["run", "My name is Ann.", "--thread", "talk", "-q"]).await.code(0);
    world.run(&["run", "Who am I?", "--thread", "talk", "-q"]).await.code(0);
    world.run(&["resume", "talk", "--message", "And you?", "-q"]).await.code(0);
    let requests = world.model.requests();
    let last = requests.iter().rfind(|one| one.role == "supervisor").unwrap();
    for words in ["My name is Ann.", "Who am I?", "And you?"] {
        assert!(last.contains(words), "{words}");
    }
}

/// S2.01
#[tokio::test]
async fn a_question_goes_to_a_short_id_of_its_tenant_and_any_other_part_is_a_name() {
    let world = World::new(answering()).await;
    let own = "0197aaaa-0000-7000-8000-00001111beef";
    let others = "0197aaab-0000-7000-8000-00002222cafe";
    world.run(&["run", "Hi", "--thread", own, "-q"]).await.code(0);
    world.run(&["run", "Hi", "--thread", others, "--tenant", "acme", "-q"]).await.code(0);
    let again = world.run(&["run", "Hi again", "--thread", "1111BEEF", "--json"]).await.code(0);
    let again = again.says(&format!("asking on thread {own}"));
    assert_eq!(again.json()["thread_id"], own);
    for name in ["beef", "cafe", "0197aaaa", "2222cafe", "20261128"] {
        world.run(&["run", "Hi", "--thread", name, "-q"]).await.code(0);
    }
    let listed = world.run(&["threads", "--tenant", "default", "--json"]).await.code(0).json();
    let titles: Vec<&Value> =
        listed.as_array().unwrap().iter().rev().map(|one| &one["title"]).collect();
    assert_eq!(titles[1..], ["beef", "cafe", "0197aaaa", "2222cafe", "20261128"], "{listed}");
    let alike = "0197aaac-0000-7000-8000-33331111beef";
    world.run(&["run", "Hi", "--thread", alike, "-q"]).await.code(0);
    let asked = ["run", "Hi again", "--thread", "1111beef", "-q"];
    world.run(&asked).await.code(2).says("is ambiguous").says(own).says(alike);
}

/// S2.01
#[tokio::test]
async fn the_next_command_finds_a_named_thread_of_every_tenant() {
    let world = World::new(answering()).await;
    for (tenant, is_named) in [("default", true), ("acme", false)] {
        let submit = ["run", "Hi", "--thread", "weekly", "--tenant", tenant, "--detach"];
        let submitted = world.run(&submit).await.code(0);
        let id = submitted.stdout.trim().to_owned();
        let name = if is_named { "weekly" } else { id.as_str() };
        submitted.says(&format!("perihelion resume {name}\n"));
        let shown = world.run(&["threads", "show", name, "--json"]).await.code(0).json();
        assert_eq!(shown["thread_id"], id, "{tenant}");
    }
}

/// S2.01: a name that one tenant's fork takes is free for another tenant's question.
#[tokio::test]
async fn a_fork_has_its_name_among_the_threads_of_its_tenant() {
    let world = World::new(answering()).await;
    let ask = ["run", "Hi", "--thread", "weekly", "--tenant", "acme", "--json", "-q"];
    let asked = world.run(&ask).await.code(0).json();
    let source = asked["thread_id"].as_str().unwrap();
    let fork = ["threads", "fork", source, "--at", "1", "--thread", "plan"];
    let forked = world.run(&fork).await.code(0);
    let fork = forked.stdout.trim().to_owned();
    forked.says(&format!("perihelion resume {fork}"));
    world.run(&["run", "Hi", "--thread", "plan", "-q"]).await.code(0);
    let listed = world.run(&["threads", "--tenant", "default", "--json"]).await.code(0).json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["title"]), (1, &"plan".into()));
    assert_ne!(listed[0]["thread_id"], fork);
}

/// S2.01
#[tokio::test]
async fn a_disabled_agent_is_not_in_the_catalog() {
    let world = World::new(answering()).await;
    world.run(&["run", "Hi", "--disable", "NOTES", "--prefer", "files", "-q"]).await.code(0);
    let supervisor = &world.model.requests()[0];
    assert!(supervisor.contains("mcp_agent_files") && !supervisor.contains("mcp_agent_notes"));
}

/// S2.11
#[tokio::test]
async fn a_server_that_fails_is_a_warning_and_the_run_continues_without_it() {
    let world = World::new(reading()).await;
    let broken = "[mcp_servers.broken]\ncommand = \"/nowhere/at-all\"\n";
    world.write("mcp-servers.toml", &format!("{broken}{}", super::world::SERVERS));
    let run = world.run(&["run", "What is it?"]).await.code(0);
    assert_eq!(run.stdout, "It is 42 [1].\n");
    run.says("warning: MCP server broken: cannot start the MCP server broken");
}

/// S1.13
#[tokio::test]
async fn a_model_that_answers_nonsense_still_ends_in_an_answer() {
    let nonsense = Script::new()
        .rule(Rule::new(Reply::text("The weather is lovely.")).role(Role::Supervisor))
        .rule(Rule::new(Reply::text("Nothing could be found out.")).role(Role::Qa));
    let world = World::new(nonsense).await;
    let run = world.run(&["run", "What is it?"]).await.code(1);
    assert!(run.stdout.contains("none of the work succeeded"), "no model invents it: {run:?}");
    run.says("no task succeeded: no usable decision could be made");
}

/// S1.13
#[tokio::test]
async fn if_the_model_call_for_the_answer_fails_the_findings_are_the_answer() {
    let refuses = Rule::new(Reply::status(400, "no more today")).role(Role::Qa);
    let script = super::world::first(refuses, reading());
    let world = World::new(script).await;
    let run = world.run(&["run", "What is it?", "-q"]).await.code(0);
    assert!(run.stdout.contains("a.txt says 42"), "{run:?}");
    assert!(run.stdout.contains("no more today"), "{run:?}");
}

#[tokio::test]
async fn logs_go_to_standard_error_as_text_or_json_and_never_show_the_key() {
    let mut world = World::new(answering()).await;
    let run = world.run(&["run", "Hi", "-q", "--log", "debug"]).await.code(0);
    assert_eq!(run.stdout, "Hello.\n");
    assert!(run.stderr.contains("DEBUG"), "{}", run.stderr);
    world.set("PERIHELION_LOG_FORMAT", "json");
    let run = world.run(&["run", "Hi", "-q", "--log", "perihelion=debug"]).await.code(0);
    for line in run.stderr.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
}

/// S3.01
#[tokio::test]
async fn two_agents_of_one_stage_both_report() {
    let script = Script::new()
        .rule(
            Rule::new(select(&["mcp_agent_files", "mcp_agent_notes"]))
                .role(Role::Supervisor)
                .nth(1),
        )
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(
            Rule::new(Reply::call("list_notes", json!({})))
                .agent("mcp_agent_notes")
                .role(Role::Agent)
                .after_tool_results(0),
        )
        .rule(Rule::new(Reply::text("nothing to add")).role(Role::Agent))
        .rule(super::world::approved())
        .rule(Rule::new(Reply::text("Both looked.")).role(Role::Qa));
    let world = World::new(script).await;
    let run = world.run(&["run", "Look", "--json"]).await.code(0);
    let report = run.json();
    let agents: Vec<&Value> =
        report["results"].as_array().unwrap().iter().map(|one| &one["agent"]).collect();
    assert_eq!(agents, ["mcp_agent_files", "mcp_agent_notes"]);
    run.says("starting mcp_agent_files, mcp_agent_notes");
}

/// S2.10
#[tokio::test]
async fn the_events_of_a_run_are_in_the_object_on_request() {
    let world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--include-events"]).await.code(2).says("--json");
    let args = ["run", "What is it?", "--json", "--include-events", "--thread", "t"];
    let report = world.run(&args).await.code(0).json();
    let events = report["trace"].as_array().unwrap();
    let kinds: Vec<String> = events
        .iter()
        .map(|event| format!("{} {}", event["type"], event["agent"]).replace('"', ""))
        .collect();
    assert_eq!(
        kinds,
        [
            "MESSAGE supervisor",
            "DECISION supervisor",
            "MESSAGE mcp_agent_files",
            "TOOL mcp_agent_files",
            "MESSAGE mcp_agent_files",
            "MESSAGE mcp_agent_files",
            "RESULT mcp_agent_files",
            "MESSAGE supervisor",
            "DECISION supervisor",
            "MESSAGE qa",
            "RESULT qa",
        ]
    );
    let answer = events.last().unwrap();
    assert_eq!((&answer["message"], answer["data"].is_object()), (&report["answer"], true));
    assert!(events.is_sorted_by_key(|event| event["timestamp"].as_str().unwrap().to_owned()));
    let trace = world.run(&["trace", "t", "--json"]).await.code(0).json();
    assert_eq!(report["trace"], trace["events"]);
}
