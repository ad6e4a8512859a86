//! The supervisor has a team designed that is missing, and gives it the work in the same run.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::json;

use crate::office::{BOTH, Kept, Office, design, working};
use crate::world::{first, select};

/// The supervisor asks the architect first, then the new team.
fn founding() -> Script {
    let above = |agents: &[&str]| Rule::new(select(agents)).role(Role::Supervisor);
    let architect = Rule::new(Reply::json(design())).role(Role::Architect);
    let script = first(above(&["architect"]).contains("- architect: "), working());
    let chosen = above(&["team_research"]).contains("agent=\"architect\"");
    let script = first(chosen.contains("- team_research: "), script);
    first(above(&["qa"]).contains("agent=\"team_research\""), first(architect, script))
}

/// S1.10
#[tokio::test(flavor = "multi_thread")]
async fn a_team_that_a_person_agreed_to_works_in_the_run_that_had_it_designed() {
    for kept in BOTH {
        let mut office = Office::open(kept, founding()).await;
        office.world.set("PERIHELION_TEAMS_ARCHITECT", "ask");
        let world = &office.world;
        let report = world.run(&["run", "What is the answer?", "--json"]).await.code(3).json();
        let open = &report["interrupts"][0];
        assert_eq!((&open["kind"], &open["agent"]), (&json!("approval"), &json!("architect")));
        assert_eq!(open["payload"]["arguments"], design(), "{report:#}");
        assert_eq!(world.run(&["teams", "--json"]).await.code(0).json(), json!([]));
        let thread = report["thread_id"].as_str().unwrap();

        let resumed = world.run(&["resume", thread, "--approve", "--json"]).await.code(0).json();
        assert_eq!(resumed["answer"], "It is 42 [1].", "{kept:?}: {resumed:#}");
        let agents: Vec<_> =
            resumed["results"].as_array().unwrap().iter().map(|one| &one["agent"]).collect();
        assert_eq!(agents, ["architect", "team_research"]);
        assert_eq!((office.notes(), world.asked(Role::Architect)), (1, 1));
        let listed = world.run(&["teams", "--json"]).await.code(0).json();
        assert_eq!((&listed[0]["name"], &listed[0]["version"]), (&json!("research"), &json!(1)));
        world.run(&["replay", thread]).await.code(0);
    }
}

/// S1.10
#[tokio::test(flavor = "multi_thread")]
async fn configuration_can_skip_the_question_or_forbid_the_design_of_a_team() {
    let mut office = Office::open(Kept::Sqlite, founding()).await;
    office.world.set("PERIHELION_TEAMS_ARCHITECT", "save");
    let report = office.world.run(&["run", "What is the answer?", "--json"]).await.code(0).json();
    assert_eq!(report["answer"], "It is 42 [1].", "{report:#}");

    let office = Office::with_team(Kept::Sqlite, working()).await;
    office.world.run(&["run", "What is the answer?", "--json"]).await.code(0);
    let requests = office.world.model.requests();
    assert!(requests.iter().all(|one| !one.contains("- architect: ")));
}

/// S1.10
#[tokio::test(flavor = "multi_thread")]
async fn a_team_that_a_person_refused_is_not_saved_and_the_run_continues_without() {
    let mut office = Office::open(Kept::Sqlite, {
        let done = Rule::new(select(&["qa"])).role(Role::Supervisor);
        first(done.contains("a person refused the team: too many"), founding())
    })
    .await;
    office.world.set("PERIHELION_TEAMS_ARCHITECT", "ask");
    let world = &office.world;
    let report = world.run(&["run", "What is the answer?", "--json"]).await.code(3).json();
    let thread = report["thread_id"].as_str().unwrap();
    let ended =
        world.run(&["resume", thread, "--deny", "--reason", "too many", "--json"]).await.json();
    assert_eq!(ended["results"][0]["error"]["type"], "Rejected", "{ended:#}");
    assert_eq!(world.run(&["teams", "--json"]).await.code(0).json(), json!([]));
}
