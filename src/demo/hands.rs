//! The hands demo: an analyst counts, a program computes on its table, and an API is called with the result.
//!
//! The course: a plan of three tasks in a row. The rows reach the program as data, not through the model; the API is a
//! real one on loopback. The scripted model composes its texts from the content of its requests.

use std::path::Path;

use serde_json::{Value, json};

use super::analyst;
use super::reading::{output, section, unescape, usual};
use super::{table, timezones};
use perihelion_llm::scripted::{RecordedRequest, Reply};
use perihelion_servers::demo_data::DemoData;

pub const HANDS_QUESTION: &str = "Which ten countries have the most time zones, what share of these do the first three hold, and where do those of the first one lie?";

const PYTHON: &str = "mcp_agent_maths";
const API: &str = "mcp_agent_atlas";

const SQL: &str = "SELECT c.code AS code, c.name AS country, COUNT(*) AS zones FROM zone_countries AS zc \
    JOIN countries AS c ON c.code = zc.country GROUP BY c.code, c.name ORDER BY zones DESC, country LIMIT 10";

const PROGRAM: &str = "\
rows = [dict(zip(upstream_1['columns'], row)) for row in upstream_1['rows']]
total = sum(row['zones'] for row in rows)
leaders = rows[:3]
table = [{'country': row['country'], 'zones': row['zones'], 'percent': round(100 * row['zones'] / total, 1)} for row in leaders]
{'of': total, 'first_three_percent': round(100 * sum(row['zones'] for row in leaders) / total, 1)}";

pub(super) fn servers(data: &DemoData, spec: &Path, atlas: &str) -> String {
    let spec = spec.display().to_string();
    let api = ["api", "--spec", &spec, "--base-url", atlas, "--read-only"];
    let knows = "an HTTP API that knows where the zones of a country lie";
    [
        timezones(data),
        table("maths", "computes with Python programs in a sandbox", &["python"], ""),
        table("atlas", knows, &api, "open_world = false"),
    ]
    .concat()
}

pub(super) fn respond(request: &RecordedRequest) -> Option<Reply> {
    let reply = match (request.role.as_str(), request.stage.as_deref()) {
        ("supervisor", _) => supervisor(request),
        (_, Some("generate")) => json!({
            "sql": SQL, "secondary_sql": null, "used_tables": ["countries", "zone_countries"],
            "assumptions": [], "notes": "It counts rows of the tables.",
        }),
        (_, Some("interpret")) => interpretation(request),
        (_, Some("code")) => json!({
            "rationale": "The shares follow from the counts.", "code": PROGRAM, "table": true,
        }),
        (_, Some("plan")) => plan(request),
        (_, Some("summary")) => return Some(Reply::text(summary(request))),
        ("qa", _) => return Some(Reply::text(answer(request))),
        _ => usual(request)?,
    };
    Some(Reply::json(reply))
}

fn supervisor(request: &RecordedRequest) -> Value {
    if request.contains("<result number=\"3\"") {
        return json!({
            "thought_process": "Counts, shares and places are there.",
            "plan": ["done: count", "done: compute", "done: ask the API", "answer"],
            "selected_agents": ["qa"], "tasks": [], "clarification": null, "confidence": 0.9,
        });
    }
    json!({
        "thought_process": "The shares stand on the counts, and the API has to be asked about the country that leads.",
        "plan": ["count", "compute the shares", "ask the API for the places", "answer"],
        "selected_agents": [analyst::AGENT, PYTHON, API],
        "tasks": [
            { "id": "t1", "agent": analyst::AGENT, "depends_on": [],
              "task": "Count the time zones of each country and give the first ten, with the countries' codes." },
            { "id": "t2", "agent": PYTHON, "depends_on": ["t1"],
              "task": "Compute what share of the ten countries' zones each of the first three holds." },
            { "id": "t3", "agent": API, "depends_on": ["t1", "t2"],
              "task": "List the time zones of the country with the most of them, with latitude and longitude." },
        ],
        "clarification": null, "confidence": 0.9,
    })
}

fn interpretation(request: &RecordedRequest) -> Value {
    let rows = analyst::rows(request);
    let listed: Vec<String> = rows
        .iter()
        .filter_map(|row| match row.as_slice() {
            [code, country, zones] => Some(format!("{country} ({code}): {zones}")),
            _ => None,
        })
        .collect();
    let answer = format!("The most time zones have {}.", listed.join(", "));
    json!({ "answer": answer, "highlights": [], "follow_ups": [], "chart": null })
}

/// Takes the code of the country that the analyst named first.
fn plan(request: &RecordedRequest) -> Value {
    let upstream = unescape(section(request.last_text(), "<upstream>", "</upstream>"));
    let code = section(&upstream, " (", ")").to_owned();
    json!({
        "make_request": true, "method": "GET", "path": "/countries/{code}/zones",
        "path_params": [{ "name": "code", "value": code }], "query_params": [], "headers": [],
        "json_body": null, "reason": "It lists the zones of a country.", "failure_reason": null,
    })
}

fn summary(request: &RecordedRequest) -> String {
    if request.agent.as_deref() == Some(PYTHON) {
        let outcome = unescape(section(request.last_text(), "<outcome>", "</outcome>"));
        let number = |name: &str| {
            let rest = section(&outcome, &format!("\"{name}\":"), "\n");
            rest.split([',', '}']).next().unwrap_or_default().trim().to_owned()
        };
        let share = number("first_three_percent");
        let all = number("of");
        return format!("The first three hold {share} % of the {all} zones of these countries.");
    }
    let body = unescape(section(request.last_text(), "<body", "</body>"));
    let list = body.split_once('[').map(|(_, rest)| format!("[{}", rest.trim()));
    let zones: Vec<Value> =
        list.and_then(|list| serde_json::from_str(&list).ok()).unwrap_or_default();
    let place = |zone: &Value| {
        format!(
            "{} at {}, {}",
            zone["zone"].as_str().unwrap_or("?"),
            zone["latitude"],
            zone["longitude"]
        )
    };
    let places: Vec<String> = zones.iter().map(place).collect();
    format!("Its {} zones are {}.", zones.len(), places.join("; "))
}

fn answer(request: &RecordedRequest) -> String {
    let cited = |number: usize| {
        let output = output(request, number);
        let first = output.lines().next().unwrap_or_default();
        (!first.is_empty()).then(|| format!("{first} [{number}]"))
    };
    (1..=3).filter_map(cited).collect::<Vec<_>>().join("\n\n")
}
