//! Designs: made by the architect, repaired, shown, kept, shared, deleted.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::json;

use crate::office::{BOTH, Kept, Office, design};

/// S1.10
#[tokio::test(flavor = "multi_thread")]
async fn a_goal_becomes_a_team_whose_design_is_repaired_and_shown_before_it_is_stored() {
    for kept in BOTH {
        let mut wrong = design();
        wrong["agents"][0]["servers"] = json!(["fiels"]);
        wrong["agents"][1]["name"] = json!("reader");
        let architect = |design| Rule::new(Reply::json(design)).role(Role::Architect);
        let script = Script::new().rule(architect(wrong).times(1)).rule(architect(design()));
        let office = Office::open(kept, script).await;
        let world = &office.world;

        let asked = world.run(&["teams", "create", "Find answers & note them"]).await.code(2);
        assert!(asked.stdout.contains("flowchart TD"), "{asked:#?}");
        assert!(asked.stdout.contains("keeper of notes"), "{asked:#?}");
        asked.says("--yes to save the team: research");
        assert_eq!(world.run(&["teams", "--json"]).await.code(0).json(), json!([]), "{kept:?}");
        let requests = world.model.requests();
        let [first, second] = requests.as_slice() else { panic!("{requests:#?}") };
        for shown in ["Find answers &amp; note them", "<server name=\"shop\">", "append_note"] {
            assert!(first.contains(shown), "{shown} is not in: {:#?}", first.texts());
        }
        for fault in ["did you mean files?", "another agent has this name: reader"] {
            assert!(second.contains(fault), "{fault} is not in: {}", second.last_text());
        }

        world
            .run(&["teams", "create", "Find answers", "--yes"])
            .await
            .code(0)
            .says("saved the team research, version 1");
        let listed = world.run(&["teams", "list", "--json"]).await.code(0).json();
        assert_eq!(
            (&listed[0]["agent"], &listed[0]["version"]),
            (&json!("team_research"), &json!(1))
        );
        let shown = world.run(&["teams", "show", "team_research"]).await.code(0).stdout;
        assert!(shown.contains("version 1") && shown.contains("Notes the facts."), "{shown}");
        let drawn = world.run(&["teams", "draw", "research"]).await.code(0).stdout;
        assert!(drawn.starts_with("flowchart TD") && drawn.contains("[(files)]"), "{drawn}");

        let exported = world.run(&["teams", "export", "research"]).await.code(0);
        assert_eq!(exported.json(), design());
        world.write("team.json", &exported.stdout);
        world.run(&["teams", "import", "team.json"]).await.code(0).says("version 2");
        world.run(&["teams", "delete", "research"]).await.code(0).says("deleted the team research");
        world.run(&["teams", "show", "research"]).await.code(2).says("unknown team: research");
        world.run(&["teams", "import", "team.json"]).await.code(0).says("version 1");
        world.run(&["teams", "show", "reserch"]).await.code(2).says("did you mean research?");
    }
}

/// S1.10
#[tokio::test(flavor = "multi_thread")]
async fn a_design_that_stays_wrong_is_given_up_and_an_imported_one_is_refused_with_its_faults() {
    let mut wrong = design();
    wrong["agents"][0]["servers"] = json!([]);
    let script = Script::new().rule(Rule::new(Reply::json(wrong.clone())).role(Role::Architect));
    let office = Office::open(Kept::Sqlite, script).await;
    let world = &office.world;
    world.run(&["teams", "create", "Anything", "--yes"]).await.code(1).says("team_design");
    assert_eq!(world.asked(Role::Architect), 3, "once, and twice more with what was wrong");
    world.write("team.json", &wrong.to_string());
    world.run(&["teams", "import", "team.json"]).await.code(2).says("agents[0].servers is empty");
    world.write("team.json", "{ \"name\": 1 }");
    world.run(&["teams", "import", "team.json"]).await.code(2).says("team.json");
    world.run(&["run", "q", "--team", "nobody"]).await.code(2).says("perihelion teams");
}
