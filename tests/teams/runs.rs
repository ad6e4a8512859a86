//! Teams at work: asked by name, and found by the supervisor.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};

use crate::office::{BOTH, Kept, Office, design, working};
use crate::world::{approved, first, select};

fn check(office: &Office, report: &Value) {
    assert_eq!(report["status"], "done", "{report:#}");
    let [result] = report["results"].as_array().unwrap().as_slice() else { panic!("{report:#}") };
    assert_eq!(result["agent"], "team_research");
    assert_eq!(result["output"], "It is 42.", "the team's own numbers are not the star's");
    assert_eq!(report["answer"], "It is 42 [1].");
    let citations = report["citations"].to_string();
    assert!(
        citations.contains("files.read") && citations.contains("notes.append_note"),
        "{citations}"
    );
    assert_eq!((office.asked("reader"), office.asked("keeper"), office.notes()), (2, 2, 1));
    for request in office.world.model.requests() {
        assert_eq!(json!(request.thread), report["thread_id"], "{}", request.role);
    }
}

/// S1.10
#[tokio::test(flavor = "multi_thread")]
async fn the_supervisor_sees_a_team_as_one_agent_and_routes_to_it() {
    for kept in BOTH {
        let office = Office::with_team(kept, working()).await;
        let world = &office.world;
        let report = world.run(&["run", "What is the answer?", "--json"]).await.code(0).json();
        check(&office, &report);
        let requests = world.model.requests();
        let supervisors: Vec<_> = requests.iter().filter(|one| one.role == "supervisor").collect();
        let menu = "- team_research: Finds answers in the files and notes them; a team of reader (reader of files), keeper";
        assert!(supervisors[0].contains(menu), "{:#?}", supervisors[0].texts());
        assert_eq!(supervisors.iter().filter(|one| one.contains(menu)).count(), 2, "none inside");
        let reader = requests.iter().find(|one| one.agent.as_deref() == Some("reader")).unwrap();
        assert!(reader.contains("reader of files. Goal: Finds the facts."));

        let thread = report["thread_id"].as_str().unwrap();
        let trace = world.run(&["trace", thread]).await.code(0).stdout;
        for drawn in ["team_research", "reader", "keeper", "append_note"] {
            assert!(trace.contains(drawn), "{drawn} is not in the trace:\n{trace}");
        }
        world.run(&["replay", thread]).await.code(0);
        assert_eq!(world.model.requests().len(), requests.len(), "a replay asks nobody");
    }
}

/// S1.10: nobody is asked where to go.
#[tokio::test(flavor = "multi_thread")]
async fn a_team_that_is_asked_by_name_does_the_whole_work() {
    for kept in BOTH {
        let office = Office::with_team(kept, working()).await;
        let world = &office.world;
        let asked = ["teams", "run", "research", "What is the answer?", "--json"];
        check(&office, &world.run(&asked).await.code(0).json());
        assert_eq!(world.asked(Role::Supervisor), 3, "the team's own alone");
    }
}

/// S1.10: an agent with several servers, a database among them.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_with_several_servers_works_with_each_of_them() {
    let mut design = design();
    design["agents"][0]["servers"] = json!(["files", "shop"]);
    let query = Reply::call("query", json!({ "sql": "SELECT SUM(amount) AS total FROM sale" }));
    let seller = |reply: Reply| Rule::new(reply).role(Role::Agent).agent("reader_shop");
    let script = Script::new()
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor).contains("<result number="))
        .rule(Rule::new(select(&["reader_shop"])).role(Role::Supervisor))
        .rule(seller(query).after_tool_results(0))
        .rule(seller(Reply::text("42 in all")))
        .rule(approved())
        .rule(Rule::new(Reply::text("42.")).role(Role::Qa));
    let office = Office::open(Kept::Sqlite, script).await;
    office.import(&design).await;
    let asked = ["run", "What was sold?", "--team", "research", "--json", "--include-data"];
    let report = office.world.run(&asked).await.code(0).json();
    assert_eq!(report["data"]["rows"], json!([[42]]), "{report:#}");
    let supervisor = office.world.model.requests();
    assert!(supervisor[0].contains("- reader_files: ") && supervisor[0].contains("- keeper: "));
}

/// S1.10: a server that may not be used is not used by a team either.
#[tokio::test(flavor = "multi_thread")]
async fn a_team_avoids_disabled_agents_and_fails_alone_if_no_agent_is_left() {
    let nobody = Rule::new(Reply::text("Nobody could look.")).role(Role::Qa);
    let office = Office::with_team(Kept::Sqlite, first(nobody, working())).await;
    let asked = ["run", "q", "--team", "research", "--disable", "files,notes", "--json"];
    let report = office.world.run(&asked).await.json();
    let error = &report["results"][0]["error"];
    assert_eq!(error["type"], "ConfigurationError", "{report:#}");
    assert!(error["message"].as_str().unwrap().ends_with("files, notes"), "{error}");
    assert_eq!(office.world.asked(Role::Agent), 0);
}
