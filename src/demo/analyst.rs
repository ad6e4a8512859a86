//! The answers of the demo's scripted model as an analyst, stage by stage; figures come from the rows in the requests.

use serde_json::{Value, json};

use super::reading::{output, section, unescape, usual};
use perihelion_llm::scripted::{RecordedRequest, Reply};

pub(super) const AGENT: &str = "mcp_agent_timezones";

/// The questions of the analyst demo, asked one after the other in one thread.
pub const QUESTIONS: [&str; 3] = [
    "Which five countries have the most time zones?",
    "Draw how many clock changes there were in each year since 2000.",
    "And in which five zones did the clocks change most often in that time?",
];

const COUNTRIES: &str = "SELECT c.name AS country, COUNT(*) AS zones FROM zone_countries AS zc \
    JOIN countries AS c ON c.code = zc.country GROUP BY c.name ORDER BY zones DESC, country LIMIT 5";
const YEARS: &str = "SELECT CAST(strftime('%Y', changed_at) AS INTEGER) AS year, COUNT(*) AS changes FROM transitions \
    WHERE changed_at >= '2000-01-01' AND changed_at < '2026-01-01' AND offset_before <> offset_after GROUP BY year ORDER BY year";
const ZONES: &str = "SELECT zone, COUNT(*) AS changes FROM transitions WHERE changed_at >= '2000-01-01' \
    AND changed_at < '2026-01-01' AND offset_before <> offset_after GROUP BY zone ORDER BY changes DESC, zone LIMIT 5";

pub(super) fn is_for(request: &RecordedRequest) -> bool {
    request.agent.as_deref() == Some(AGENT)
        || QUESTIONS.iter().any(|question| request.last_text().contains(question))
}

pub(super) fn respond(request: &RecordedRequest) -> Option<Reply> {
    let reply = match (request.role.as_str(), request.stage.as_deref()) {
        ("supervisor", _) => supervisor(request),
        ("classifier", _) => intent(request),
        (_, Some("clarify")) => json!({
            "needed": false, "questions": [],
            "assumptions": if at(request) == 0 { json!([]) } else { json!(["“Since 2000” means 2000 to 2025"]) },
        }),
        (_, Some("generate")) => draft(request),
        (_, Some("triage")) => json!({
            "decision": "RETRY_WITH_PATCH", "reason": "The column is called zone.", "sql": ZONES, "question": null,
        }),
        (_, Some("interpret")) => interpretation(request),
        ("qa", _) => return Some(Reply::text(answer(request))),
        _ => usual(request)?,
    };
    Some(Reply::json(reply))
}

/// Returns the question of a request: the last one in it.
fn at(request: &RecordedRequest) -> usize {
    let text = request.last_text();
    let found = QUESTIONS.iter().enumerate();
    let last = found.filter_map(|(at, question)| Some((text.rfind(question)?, at))).max();
    last.map_or(0, |(_, at)| at)
}

fn supervisor(request: &RecordedRequest) -> Value {
    let agents = if request.last_text().contains("<result number=") { ["qa"] } else { [AGENT] };
    json!({
        "thought_process": "The tables of the time zone database know.",
        "plan": ["ask the analyst", "answer"],
        "selected_agents": agents, "tasks": [], "clarification": null,
    })
}

fn intent(request: &RecordedRequest) -> Value {
    let kind = if at(request) == 1 { "ANALYTICS_REPORT" } else { "DATA_QA" };
    json!({ "intent": kind, "confidence": 0.95, "reason": "The tables hold it.", "next": "clarify" })
}

fn draft(request: &RecordedRequest) -> Value {
    let (sql, tables) = match at(request) {
        0 => (COUNTRIES.to_owned(), json!(["countries", "zone_countries"])),
        1 => (YEARS.to_owned(), json!(["transitions"])),
        // A wrong name, whose error the triage puts right.
        _ => (ZONES.replace("SELECT zone,", "SELECT zone_name,"), json!(["transitions"])),
    };
    json!({
        "sql": sql, "secondary_sql": null, "used_tables": tables, "assumptions": [],
        "notes": "It counts rows of the tables.",
    })
}

fn interpretation(request: &RecordedRequest) -> Value {
    let rows = rows(request);
    let listed: Vec<String> = rows.iter().take(5).map(|row| row.join(": ")).collect();
    let (answer, chart) = match at(request) {
        0 => (format!("The most time zones have {}.", listed.join(", ")), Value::Null),
        1 => {
            let most = rows.iter().max_by_key(|row| row.get(1).and_then(|n| n.parse::<u64>().ok()));
            let most = most.cloned().unwrap_or_default().join(", with changes: ");
            let chart = json!({
                "kind": "line", "x": "year", "y": "changes", "series": null, "title": "Clock changes per year",
            });
            (format!("The year with the most clock changes is {most}."), chart)
        }
        _ => (format!("The clocks changed most often in {}.", listed.join(", ")), Value::Null),
    };
    json!({ "answer": answer, "highlights": [], "follow_ups": [], "chart": chart })
}

pub(super) fn rows(request: &RecordedRequest) -> Vec<Vec<String>> {
    let text = unescape(section(request.last_text(), "<result truncated=", "</result>"));
    let lines = text.lines().skip(2).filter(|line| !line.trim().is_empty());
    lines.map(|line| line.split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

fn answer(request: &RecordedRequest) -> String {
    format!("{} [1]", output(request, 1))
}
