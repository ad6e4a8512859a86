//! Teams that work for teams: as deep as they are, they are crashed, asked, traced and marked like one.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};

use crate::office::{BOTH, Kept, Office, design, working};
use crate::world::{first, select};

/// A team whose one agent is the team that reads and notes.
fn outer() -> Value {
    json!({
        "name": "answers",
        "description": "Answers whatever is asked.",
        "agents": [
            { "name": "helper", "role": "finder", "goal": "Has answers found.", "servers": ["team_research"] },
        ],
    })
}

/// The supervisor above chooses the outer team; everything below is as it is with one team.
fn nested() -> Script {
    let above = |agents: &[&str]| {
        Rule::new(select(agents)).role(Role::Supervisor).contains("- team_answers: ")
    };
    let script = first(above(&["team_answers"]), working());
    first(above(&["qa"]).contains("<result number="), script)
}

async fn office(kept: Kept, script: Script) -> Office {
    let office = Office::with_team(kept, script).await;
    office.import(&outer()).await;
    office
}

fn check(office: &Office, report: &Value) {
    assert_eq!(report["status"], "done", "{report:#}");
    let [result] = report["results"].as_array().unwrap().as_slice() else { panic!("{report:#}") };
    assert_eq!(
        (&result["agent"], &result["output"]),
        (&json!("team_answers"), &json!("It is 42."))
    );
    assert_eq!(office.notes(), 1);
}

/// S1.10
#[tokio::test(flavor = "multi_thread")]
async fn a_team_works_for_a_team_within_one_trace_and_untrusted_text_stays_marked() {
    for kept in BOTH {
        let mut office = office(kept, nested()).await;
        office.open_files();
        office.world.set("PERIHELION_TRUST_TAINT", "off");
        let world = &office.world;
        let report = world.run(&["run", "What is the answer?", "--json"]).await.code(0).json();
        check(&office, &report);
        assert_eq!((office.asked("reader"), office.asked("keeper")), (2, 2));
        let marks = report["results"][0]["tainted_by"].to_string();
        assert!(marks.contains("files.read"), "{kept:?}: {report:#}");
        let thread = report["thread_id"].as_str().unwrap();
        let trace = world.run(&["trace", thread]).await.code(0).stdout;
        for drawn in ["team_answers", "team_research", "reader", "append_note"] {
            assert!(trace.contains(drawn), "{drawn} is not in the trace:\n{trace}");
        }
        world.run(&["replay", thread]).await.code(0);
    }
}

/// S1.10, X2
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_two_teams_deep_continues_there_and_sends_no_call_twice() {
    for kept in BOTH {
        let hangs = Rule::new(Reply::hang()).role(Role::Agent).agent("keeper");
        let script = first(hangs.after_tool_results(1).times(1), nested());
        let office = office(kept, script).await;
        let world = &office.world;
        let mut process = world.start(&["run", "What is the answer?", "--thread", "t", "--quiet"]);
        // Three supervisors, reader twice, reflector, supervisor, keeper twice.
        world.model.wait_for_requests(9).await;
        assert_eq!(office.notes(), 1, "{kept:?}");
        process.kill().await.unwrap();
        check(&office, &world.run(&["resume", "t", "--json"]).await.code(0).json());
        assert_eq!((office.asked("reader"), office.asked("keeper")), (2, 3), "{kept:?}");
        world.run(&["replay", "t"]).await.code(0);
    }
}

/// S1.10, S3.09
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_two_teams_deep_surfaces_at_the_top_and_is_answered_once() {
    for kept in BOTH {
        let office = office(kept, nested()).await;
        office.gate();
        let asked = office.world.run(&["run", "What is the answer?", "--json"]).await;
        let report = asked.code(3).json();
        assert_eq!(report["interrupts"][0]["agent"], "keeper", "{report:#}");
        let thread = report["thread_id"].as_str().unwrap();
        let resumed = office.world.run(&["resume", thread, "--approve", "--json"]).await;
        check(&office, &resumed.code(0).json());
    }
}

/// S1.10
#[tokio::test(flavor = "multi_thread")]
async fn a_team_within_itself_is_refused_and_a_disabled_server_is_used_at_no_depth() {
    let office = office(Kept::Sqlite, nested()).await;
    let mut round = design();
    round["agents"][0]["servers"] = json!(["team_answers"]);
    office.world.write("round.json", &round.to_string());
    let refused = office.world.run(&["teams", "import", "round.json"]).await.code(2);
    refused.says("research → answers → research");
    let asked = ["run", "q", "--team", "answers", "--disable", "files,notes", "--json"];
    let report = office.world.run(&asked).await.json();
    let text = report["results"][0]["error"]["message"].as_str().unwrap().to_owned();
    assert!(text.ends_with("files, notes"), "{report:#}");
    assert_eq!(office.world.asked(Role::Agent), 0);
    let drawn = office.world.run(&["teams", "draw"]).await.code(0).stdout;
    for part in ["flowchart TD", "mcp_agent_files", "team_answers", "team_research"] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
    let drawn = office.world.run(&["teams", "draw", "answers"]).await.code(0).stdout;
    assert!(drawn.contains("finder") && drawn.trim_end().ends_with("server0"), "{drawn}");
}
