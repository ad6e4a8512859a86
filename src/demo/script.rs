//! The answers of the demo's scripted model: decided from each request alone, so that a resumed run continues.
//!
//! The steps: a plan with two parallel agents. A wrong column name, whose database error is recovered. A count that is
//! REJECTED because it includes rows without a clock change, and then APPROVED. An output that is FIXED from the
//! documents. An answer with citations. Facts come from the tool results in the requests, through
//! [`reading`](super::reading).

use serde_json::json;

use super::analyst;
use super::reading::{hit, output, rows, tool_results, unescape};
use perihelion_llm::scripted::{RecordedRequest, Reply};

pub const QUESTION: &str = "Between 2010 and 2025, in which time zones did the clocks change most often, how many times, and why?";

const SQL: &str = "mcp_agent_sql";
const FILES: &str = "mcp_agent_files";

pub(super) fn respond(request: &RecordedRequest) -> Option<Reply> {
    if analyst::is_for(request) {
        return analyst::respond(request);
    }
    Some(match (request.role.as_str(), request.agent.as_deref()) {
        ("supervisor", _) => supervisor(request),
        ("agent", Some(SQL)) => sql_agent(request),
        ("agent", Some(FILES)) => files_agent(request),
        ("reflector", Some(SQL)) => sql_reflector(request),
        ("reflector", Some(FILES)) => files_reflector(request),
        ("qa", _) => Reply::text(answer(request)),
        _ => return None,
    })
}

fn supervisor(request: &RecordedRequest) -> Reply {
    if !request.contains(QUESTION) {
        return Reply::json(json!({
            "thought_process": "The script knows nothing of this question.",
            "plan": ["answer"], "selected_agents": ["qa"], "tasks": [], "clarification": null,
        }));
    }
    if request.contains("<result number=\"2\"") {
        return Reply::json(json!({
            "thought_process": "The counts name Morocco's zones, and the documents give the reason: Ramadan.",
            "plan": ["done: count the changes in the tables", "done: find the reason in the documents", "answer"],
            "selected_agents": ["qa"], "tasks": [], "clarification": null,
        }));
    }
    Reply::json(json!({
        "thought_process": "The counts are in the tables, the reasons in the documents; neither needs the other.",
        "plan": ["count the changes in the tables", "find the reason in the documents", "answer"],
        "selected_agents": [SQL, FILES],
        "tasks": [
            { "id": "t1", "agent": SQL, "depends_on": [],
              "task": "Count for each zone how often its clocks changed from 2010 to 2025, and give the first five." },
            { "id": "t2", "agent": FILES, "depends_on": [],
              "task": "Find why clocks change more than twice a year in some zones, such as in Morocco, and whether \
                       that still holds. Quote file and line." },
        ],
        "clarification": null,
    }))
}

fn sql_agent(request: &RecordedRequest) -> Reply {
    let count = |column: &str, also: &str| {
        let sql = format!(
            "SELECT {column}, COUNT(*) AS changes FROM transitions WHERE changed_at >= '2010-01-01' \
             AND changed_at < '2026-01-01'{also} GROUP BY {column} ORDER BY changes DESC, {column} LIMIT 5"
        );
        Reply::call("query", json!({ "sql": sql }))
    };
    let corrected = request.contains("</reflection_feedback>");
    match request.tool_results() {
        0 => Reply::call("list_tables", json!({})),
        1 => count("zone_name", ""),
        2 => count("zone", ""),
        3 if corrected => count("zone", " AND offset_before <> offset_after"),
        _ => {
            let last = tool_results(request).pop().unwrap_or_default();
            let counted: Vec<String> = rows(&last).iter().map(|row| row.join(": ")).collect();
            Reply::text(format!("Clock changes per zone, 2010 to 2025: {}.", counted.join(", ")))
        }
    }
}

fn sql_reflector(request: &RecordedRequest) -> Reply {
    if unescape(request.last_text()).contains("offset_before <> offset_after") {
        return verdict("APPROVED", None, None);
    }
    let feedback = "The count takes in rows in which no clock moved: offset_before equals offset_after there, \
                    only the rule's name changed. Count with offset_before <> offset_after.";
    verdict("REJECTED", None, Some(feedback))
}

fn files_agent(request: &RecordedRequest) -> Reply {
    if request.tool_results() == 0 {
        return Reply::call("search", json!({ "query": "Ramadan", "path": "news/2013.txt" }))
            .and_call("search", json!({ "query": "Morocco", "path": "news/2018.txt" }));
    }
    let found = tool_results(request).join("\n");
    // The carelessness that the reflector fixes: the switch of 2018 did not end the changes.
    Reply::text(format!(
        "{} Since {} there are no clock changes any more.",
        hit(&found, "does not observe"),
        hit(&found, "permanent +01 on")
    ))
}

fn files_reflector(request: &RecordedRequest) -> Reply {
    let evidence = unescape(request.last_text());
    let refined = format!(
        "{} That makes up to four changes a year. {} And yet: {}",
        hit(&evidence, "does not observe"),
        hit(&evidence, "permanent +01 on"),
        hit(&evidence, "continue to adjust"),
    );
    verdict("FIXED", Some(&refined), None)
}

fn verdict(status: &str, refined: Option<&str>, feedback: Option<&str>) -> Reply {
    Reply::json(json!({ "status": status, "refined_output": refined, "feedback": feedback }))
}

fn answer(request: &RecordedRequest) -> String {
    let cited = |number: usize| {
        let output = output(request, number);
        (!output.is_empty()).then(|| format!("{output} [{number}]"))
    };
    let answers: Vec<_> = (1..=2).filter_map(cited).collect();
    if answers.is_empty() {
        return format!("This demo answers only its own questions, such as: {QUESTION}");
    }
    answers.join("\n\n")
}
