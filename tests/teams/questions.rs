//! Questions inside a team are put at the top, answered once, and found again under whatever version there is by then.

use serde_json::{Value, json};

use crate::office::{BOTH, Kept, Office, design, working};

async fn interrupted(office: &Office) -> String {
    office.gate();
    let report = office.world.run(&["run", "What is the answer?", "--json"]).await.code(3).json();
    let [open] = report["interrupts"].as_array().unwrap().as_slice() else { panic!("{report:#}") };
    assert_eq!((&open["kind"], &open["agent"]), (&json!("approval"), &json!("keeper")));
    assert_eq!(open["payload"]["arguments"], json!({ "text": "42" }));
    assert_eq!(office.notes(), 0);
    report["thread_id"].as_str().unwrap().to_owned()
}

fn check(office: &Office, report: &Value) {
    assert_eq!((&report["status"], &report["answer"]), (&json!("done"), &json!("It is 42 [1].")));
    assert_eq!((office.asked("reader"), office.asked("keeper"), office.notes()), (2, 2, 1));
}

/// S1.10, S3.09
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_inside_a_team_surfaces_and_is_answered_once() {
    for kept in BOTH {
        let office = Office::with_team(kept, working()).await;
        let thread = interrupted(&office).await;
        let world = &office.world;
        let shown = world.run(&["threads", "show", &thread, "--json"]).await.code(0).json();
        assert!(shown.to_string().contains("append_note"), "{shown:#}");
        check(
            &office,
            &world.run(&["resume", &thread, "--approve", "--json"]).await.code(0).json(),
        );
        world.run(&["replay", &thread]).await.code(0);
        let question = shown["interrupts"][0]["id"].as_str().unwrap();
        let again = ["resume", &thread, "--interrupt", question, "--approve"];
        world.run(&again).await.code(2).says("was already answered");
        assert_eq!(office.notes(), 1);
    }
}

/// S1.10
#[tokio::test(flavor = "multi_thread")]
async fn started_work_ends_with_the_version_of_its_start() {
    let office = Office::with_team(Kept::Sqlite, working()).await;
    let thread = interrupted(&office).await;
    let mut newer = design();
    newer["agents"][1]["name"] = json!("archivist");
    office.import(&newer).await;
    check(
        &office,
        &office.world.run(&["resume", &thread, "--approve", "--json"]).await.code(0).json(),
    );
}

/// S1.10
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_whose_team_was_deleted_waits_until_it_is_restored() {
    for kept in BOTH {
        let office = Office::with_team(kept, working()).await;
        let thread = interrupted(&office).await;
        let world = &office.world;
        world.run(&["teams", "delete", "research"]).await.code(0);
        let gone = world.run(&["resume", &thread, "--approve"]).await.code(1);
        gone.says("team_research: there is no team of this name; create");
        office.import(&design()).await;
        check(&office, &world.run(&["resume", &thread, "--json"]).await.code(0).json());
    }
}
