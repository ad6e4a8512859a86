//! Budgets: a team has what is left of the run that it works for, and no more.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};

use crate::office::{BOTH, INSIDE, Office};
use crate::world::{approved, select};

/// A team whose supervisor never has enough, and whose reader reads twice for each task.
fn insatiable() -> Script {
    let supervisor = |agents: &[&str]| Rule::new(select(agents)).role(Role::Supervisor);
    let reader = |reply| Rule::new(reply).role(Role::Agent).agent("reader");
    let read = || Reply::call("read", json!({ "path": "a.txt" }));
    Script::new()
        .rule(supervisor(&["reader"]).contains(INSIDE))
        .rule(supervisor(&["qa"]).contains("<result number="))
        .rule(supervisor(&["team_research"]))
        .rule(reader(read()).after_tool_results(0))
        .rule(reader(read()).after_tool_results(1))
        .rule(reader(Reply::text("a.txt says 42")))
        .rule(approved())
        .rule(Rule::new(Reply::text("It is 42.")).role(Role::Qa))
}

async fn under(office: &mut Office, bounds: &[(&str, &str)]) -> Value {
    for (name, value) in bounds {
        office.world.set(name, value);
    }
    office.world.run(&["run", "What is the answer?", "--json"]).await.code(0).json()
}

/// S1.05, S1.10: the calls of a team are the run's; what is left is shown, and what there is becomes the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_team_stays_within_the_remaining_calls_of_the_run_and_both_end_with_their_results() {
    for kept in BOTH {
        let mut office = Office::with_team(kept, insatiable()).await;
        let report = under(&mut office, &[("PERIHELION_LIMITS_MAX_TOOL_CALLS", "3")]).await;
        assert_eq!(report["finish_reason"], "limit", "{kept:?}: {report:#}");
        assert_eq!(report["answer"], "It is 42.");
        let [result] = report["results"].as_array().unwrap().as_slice() else {
            panic!("{report:#}")
        };
        assert_eq!(
            (&result["agent"], &result["status"]),
            (&json!("team_research"), &json!("success"))
        );
        assert_eq!(result["tools"].as_array().unwrap().len(), 3, "{result:#}");
        let requests = office.world.model.requests();
        let shown: Vec<_> = requests.iter().filter(|one| one.role == "supervisor").collect();
        for (number, left) in ["3 of 3", "3 of 3", "1 of 3"].iter().enumerate() {
            assert!(
                shown[number].contains(&format!("- tool calls: {left} left")),
                "{number}: {:#?}",
                shown[number].texts()
            );
        }
        assert_eq!(shown.len(), 3, "nobody is asked where to go with nothing left");
        let thread = report["thread_id"].as_str().unwrap();
        office.world.run(&["replay", thread]).await.code(0);
    }
}

/// S1.05, S1.10: teams are held to bounds of their own, and the run continues.
#[tokio::test(flavor = "multi_thread")]
async fn a_team_ends_at_its_limit_and_the_run_continues_with_its_findings() {
    let [kept, _] = BOTH;
    let mut office = Office::with_team(kept, insatiable()).await;
    let report = under(&mut office, &[("PERIHELION_TEAMS_MAX_STEPS", "3")]).await;
    assert_eq!(report["finish_reason"], "answered", "{report:#}");
    assert_eq!(office.asked("reader"), 3, "one task");
    let requests = office.world.model.requests();
    let reported = requests.iter().find(|one| one.role == "qa").unwrap();
    assert!(reported.contains("the limit of 3 steps was reached"), "{:#?}", reported.texts());
}
