//! What a scripted model answers to the stages of an analyst's turn.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use serde_json::{Value, json};

pub fn review(approved: bool) -> Rule {
    let problems = if approved { json!([]) } else { json!(["It counts the wrong thing."]) };
    Rule::new(Reply::json(json!({ "approved": approved, "problems": problems })))
        .role(Role::Reflector)
        .stage("review")
}

pub fn intent(kind: &str) -> Rule {
    let answer = json!({ "intent": kind, "confidence": 0.9, "reason": "It is about orders", "next": "clarify" });
    Rule::new(Reply::json(answer)).role(Role::Classifier).stage("intent")
}

pub fn clear() -> Rule {
    let answer =
        json!({ "needed": false, "questions": [], "assumptions": ["Totals are in euros"] });
    Rule::new(Reply::json(answer)).role(Role::Agent).stage("clarify")
}

pub fn draft(sql: &str) -> Rule {
    let answer = json!({
        "sql": sql, "secondary_sql": null, "used_tables": ["orders"], "assumptions": [], "notes": "It sums.",
    });
    Rule::new(Reply::json(answer)).role(Role::Agent).stage("generate")
}

pub fn interpretation(answer: &str, chart: Value) -> Rule {
    let answer = json!({ "answer": answer, "highlights": [], "follow_ups": ["And by month?"], "chart": chart });
    Rule::new(Reply::json(answer)).role(Role::Agent).stage("interpret")
}

pub fn triage(decision: &str, sql: Option<&str>, question: Option<&str>) -> Rule {
    let answer = json!({ "decision": decision, "reason": "The column is called country.", "sql": sql, "question": question });
    Rule::new(Reply::json(answer)).role(Role::Agent).stage("triage")
}

pub const BY_COUNTRY: &str = "SELECT c.country, SUM(o.total) AS total FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.country ORDER BY total DESC";
