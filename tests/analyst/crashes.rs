//! Killed in a stage and resumed: nothing is paid or sent twice, and the same answer comes out.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};

use crate::world::{
    BOTH, BY_COUNTRY, Kept, Shop, clear, draft, intent, interpretation, review, script_after,
};

fn answering(first: Rule) -> Script {
    script_after(first)
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft(BY_COUNTRY))
        .rule(review(true))
        .rule(interpretation("Norway leads with 160.5.", json!(null)))
}

fn queries(report: &Value) -> usize {
    let tools = report["results"][0]["tools"].as_array().unwrap();
    tools.iter().filter(|tool| tool["tool"] == "shop.query").count()
}

/// S2.04, X2: whichever stage was waiting for its model, the stages before it are not asked again.
#[tokio::test]
async fn a_turn_that_is_killed_in_any_stage_continues_there_and_asks_the_database_once() {
    let stages = [
        ("intent", Role::Classifier),
        ("clarify", Role::Agent),
        ("generate", Role::Agent),
        ("review", Role::Reflector),
        ("interpret", Role::Agent),
    ];
    for (at, (stage, role)) in stages.into_iter().enumerate() {
        // Each store meets the first and the last stages; the ones between alternate.
        let stores =
            if at == 0 || at == stages.len() - 1 { &BOTH[..] } else { &BOTH[at % 2..=at % 2] };
        for kept in stores {
            let hangs = Rule::new(Reply::hang()).role(role).stage(stage).times(1);
            let shop = Shop::open(*kept, answering(hangs), &[]).await;
            let mut process = shop.begin("What did customers order per country?");
            // The supervisor, the stages before, and the one that hangs.
            shop.model.wait_for_requests(at + 2).await;
            process.kill().unwrap();
            process.wait().unwrap();
            let report = shop.resume(None).await;
            assert_eq!(report["status"], "done", "{stage}, {kept:?}: {report:#}");
            assert_eq!(report["data"]["rows"], json!([["Norway", 160.5], ["Chile", 40.0]]));
            assert_eq!(queries(&report), 1, "{stage}, {kept:?}: {report:#}");
            for (other, _) in stages {
                let expected = if other == stage { 2 } else { 1 };
                assert_eq!(shop.stage(other).len(), expected, "{other} after a kill in {stage}");
            }
        }
    }
}

/// S4.10, X3: a turn is reproduced offline, step by step, without asking anybody.
#[tokio::test]
async fn a_turn_is_replayed_offline() {
    let never = Rule::new(Reply::text("")).stage("never");
    let shop = Shop::open(Kept::Sqlite, answering(never), &[]).await;
    let report = shop.ask("What did customers order per country?").await;
    assert_eq!(report["status"], "done", "{report:#}");
    let asked = shop.model.requests().len();
    let replayed = shop.perihelion(&["replay", "t"]).await;
    let output = String::from_utf8_lossy(&replayed.stderr).into_owned();
    assert!(replayed.status.success(), "{output}");
    assert_eq!(shop.model.requests().len(), asked);
}
