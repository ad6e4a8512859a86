//! What goes wrong: questions to the user, refusals, errors of the database, and their end.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use serde_json::json;

use crate::world::{
    AGENT, BY_COUNTRY, Kept, Shop, clear, draft, intent, interpretation, review, script,
    script_after, triage,
};

/// S4.02: nothing is written before the user answered, and the answer counts.
#[tokio::test]
async fn an_ambiguous_question_asks_the_user_before_any_sql() {
    let asks = json!({
        "needed": true, "assumptions": [],
        "questions": [{ "id": "q1", "question": "Which measure?", "options": ["totals", "numbers of orders"] }],
    });
    let asks = Rule::new(Reply::json(asks)).role(Role::Agent).stage("clarify").times(1);
    let script = script()
        .rule(intent("DATA_QA"))
        .rule(asks)
        .rule(clear())
        .rule(draft(BY_COUNTRY))
        .rule(interpretation("Norway leads with 160.5.", json!(null)));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    let report = shop.ask("How do countries compare?").await;
    assert_eq!(report["status"], "interrupted", "{report:#}");
    let open = &report["interrupts"][0];
    assert_eq!((&open["kind"], &open["agent"]), (&json!("clarification"), &json!(AGENT)));
    assert_eq!(open["payload"]["question"], "Which measure?", "{open:#}");
    assert_eq!(open["payload"]["options"], json!(["totals", "numbers of orders"]));
    assert!(shop.stage("generate").is_empty());
    let report = shop.resume(Some("totals")).await;
    assert_eq!(report["status"], "done", "{report:#}");
    assert!(shop.stage("generate")[0].contains("<answer>totals</answer>"));
}

/// S2.04, S4.09: the database's words and the failing statement go to triage, whose patch is checked and run.
#[tokio::test]
async fn a_query_with_a_database_error_is_patched_and_its_history_is_preserved() {
    let wrong = "SELECT nation, SUM(total) FROM orders JOIN customers ON customers.id = customer_id GROUP BY nation";
    let script = script()
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft(wrong))
        .rule(triage("RETRY_WITH_PATCH", Some(BY_COUNTRY), None))
        .rule(interpretation("Norway leads with 160.5.", json!(null)));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    let report = shop.ask("What did customers order per country?").await;
    assert_eq!(report["status"], "done", "{report:#}");
    assert_eq!(report["data"]["row_count"], 2);
    let asked = shop.stage("triage")[0].last_text().to_owned();
    assert!(asked.contains("no such column") && asked.contains("nation"), "{asked}");
    assert_eq!(
        shop.stages(),
        ["intent", "clarify", "generate", "review", "triage", "review", "interpret"]
    );
}

/// S4.05, S4.09: what the guard refuses never reaches the server, and triage hears why.
#[tokio::test]
async fn a_query_that_the_guard_refuses_is_not_sent_and_can_be_abandoned() {
    let script = script()
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft("DELETE FROM orders"))
        .rule(triage("STOP", None, None));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    let report = shop.ask("Remove all orders").await;
    let result = &report["results"][0];
    assert_eq!(result["error"]["type"], "QueryError", "{report:#}");
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains("refused: only a single SELECT may run here"), "{message}");
    assert_eq!(result["error"]["details"]["attempts"][0]["sql"], "DELETE FROM orders");
    let tools = json!(result["tools"]).to_string();
    assert!(!tools.contains("DELETE"), "{tools}");
    assert!(shop.stage("review").is_empty());
}

/// S2.04: four attempts are all there are.
#[tokio::test]
async fn after_four_attempts_the_question_is_given_up_with_their_history() {
    let script = script()
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft("SELECT nothing FROM orders"))
        .rule(triage("RETRY_WITH_PATCH", Some("SELECT nowhere FROM orders"), None));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    let report = shop.ask("What?").await;
    let error = &report["results"][0]["error"];
    assert!(error["message"].as_str().unwrap().contains("in 4 attempts"), "{report:#}");
    assert_eq!(error["details"]["attempts"].as_array().unwrap().len(), 4);
    assert_eq!(shop.stage("triage").len(), 3);
    // S4.10: what was tried is kept where the turn failed.
    let drawn = shop.perihelion(&["trace", "t"]).await;
    let drawn = String::from_utf8(drawn.stdout).unwrap();
    assert!(drawn.contains("ANALYSIS of"), "{drawn}");
    assert_eq!(drawn.matches("refused by ").count(), 4, "{drawn}");
    assert!(drawn.contains("RETRY_WITH_PATCH") && !drawn.contains("preview"), "{drawn}");
}

/// S2.04: what the reviewer objects to is written again before anything runs.
#[tokio::test]
async fn a_reviewer_s_objection_leads_back_to_writing() {
    let script = script_after(review(false).times(1))
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft(BY_COUNTRY))
        .rule(interpretation("Norway leads with 160.5.", json!(null)));
    let shop = Shop::open(Kept::Sqlite, script, &[]).await;
    let report = shop.ask("What did customers order per country?").await;
    assert_eq!(report["status"], "done", "{report:#}");
    let drafts = shop.stage("generate");
    assert_eq!(drafts.len(), 2);
    assert!(drafts[1].contains("It counts the wrong thing."));
}
