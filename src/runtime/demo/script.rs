//! What the demo's scripted model says: decided from each request alone, so that a resumed run goes on.
//!
//! The course: a plan with two agents in parallel; a wrong column name whose database error is recovered;
//! a first output that is REJECTED for what it lacks and a second one that is APPROVED; an output that is
//! FIXED; an answer with citations. Facts are taken from the tool results in the request, never invented.

use serde_json::{Value, json};

use crate::llm::scripted::{RecordedRequest, Reply};

/// The demo's question.
pub const QUESTION: &str = "Which time zones skipped a whole calendar day since 1970, when, and what did Samoa's law say about it?";

const SQL: &str = "mcp_agent_sql";
const FILES: &str = "mcp_agent_files";

/// Milliseconds before each reply, so that a person can follow.
const PACE_MS: u64 = 150;

/// Answers one request.
pub(super) fn respond(request: &RecordedRequest) -> Option<Reply> {
    let reply = match (request.role.as_str(), request.agent.as_deref()) {
        ("supervisor", _) => supervisor(request),
        ("agent", Some(SQL)) => sql_agent(request),
        ("agent", Some(FILES)) => files_agent(request),
        ("reflector", Some(SQL)) => sql_reflector(request),
        ("reflector", Some(FILES)) => files_reflector(request),
        ("qa", _) => Reply::text(answer(request)),
        _ => return None,
    };
    Some(reply.delay_ms(PACE_MS))
}

fn supervisor(request: &RecordedRequest) -> Reply {
    if request.contains("<result number=\"2\"") {
        return Reply::json(json!({
            "thought_process": "Both halves are there: the zones with their dates, and the words of the law.",
            "plan": ["done: find the skipped days in the tables", "done: find the law in the documents", "answer"],
            "selected_agents": ["qa"], "tasks": [], "clarification": null,
        }));
    }
    Reply::json(json!({
        "thought_process": "The dates are in the tables, the law is in the documents; neither needs the other.",
        "plan": ["find the skipped days in the tables", "find the law in the documents", "answer"],
        "selected_agents": [SQL, FILES],
        "tasks": [
            { "id": "t1", "agent": SQL, "depends_on": [],
              "task": "Find every zone whose offset from UTC jumped forward by 23 hours or more at once. \
                       Give zone, moment (UTC) and both offsets." },
            { "id": "t2", "agent": FILES, "depends_on": [],
              "task": "Find what the documents say of the law by which Samoa changed sides of the International \
                       Date Line. Quote it with file and lines." },
        ],
        "clarification": null,
    }))
}

fn sql_agent(request: &RecordedRequest) -> Reply {
    let jumped =
        "FROM transitions WHERE offset_after - offset_before >= 82800 ORDER BY changed_at, zone";
    let query = |columns: &str| {
        Reply::call("query", json!({ "sql": format!("SELECT {columns} {jumped}") }))
    };
    let corrected = request.contains("</reflection_feedback>");
    match (request.tool_results(), corrected) {
        (0, _) => Reply::call("list_tables", json!({})),
        (1, _) => query("zone_name"),
        (2, _) => query("zone"),
        (3, true) => query("zone, changed_at, offset_before, offset_after"),
        (3, false) => {
            let rows = table(&tool_text(request));
            let zones: Vec<&str> =
                rows.iter().filter_map(|row| row.first().map(String::as_str)).collect();
            Reply::text(format!("{} zones skipped a day: {}.", zones.len(), zones.join(", ")))
        }
        _ => {
            let lines: Vec<String> =
                table(&tool_text(request)).iter().map(|row| skipped_day(row)).collect();
            Reply::text(format!(
                "{} zones skipped a day (table transitions):\n{}",
                lines.len(),
                lines.join("\n")
            ))
        }
    }
}

/// Writes one row as a line: zone, moment, both offsets in hours.
fn skipped_day(row: &[String]) -> String {
    let hours = |index: usize| {
        let seconds: i64 = row.get(index).and_then(|text| text.parse().ok()).unwrap_or_default();
        format!("UTC{:+}", seconds / 3600)
    };
    let text = |index: usize| row.get(index).map_or("?", String::as_str);
    format!("- {}: at {} UTC, from {} to {}", text(0), text(1), hours(2), hours(3))
}

fn files_agent(request: &RecordedRequest) -> Reply {
    match request.tool_results() {
        0 => Reply::call("search", json!({ "query": "International Date Line Act" })),
        1 => {
            let (path, line) =
                first_hit(&tool_text(request)).unwrap_or(("regions/australasia.txt".into(), 1));
            Reply::call("read", json!({ "path": path, "start_line": line, "max_lines": 5 }))
        }
        _ => {
            let quoted = law(&tool_text(request));
            // The carelessness that the reflector mends: the year alone, without the day and the offsets.
            Reply::text(format!(
                "Samoa passed {} and moved across the date line in 2011.",
                quoted.title
            ))
        }
    }
}

fn sql_reflector(request: &RecordedRequest) -> Reply {
    let output = section(request.last_text(), "<output>", "</output>");
    if output.contains(" UTC, from ") {
        return verdict("APPROVED", None, None);
    }
    let feedback = "The task asks for the moment and both offsets of each zone; the output has only the names. \
                    Query changed_at, offset_before and offset_after as well.";
    verdict("REJECTED", None, Some(feedback))
}

fn files_reflector(request: &RecordedRequest) -> Reply {
    let quoted = law(&unescape(request.last_text()));
    let refined =
        format!("{}: “{}” ({}, lines {})", quoted.title, quoted.words, quoted.path, quoted.lines);
    verdict("FIXED", Some(&refined), None)
}

fn verdict(status: &str, refined: Option<&str>, feedback: Option<&str>) -> Reply {
    Reply::json(json!({ "status": status, "refined_output": refined, "feedback": feedback }))
}

fn answer(request: &RecordedRequest) -> String {
    let text = request.last_text();
    let mut parts = Vec::new();
    for number in 1..=2 {
        let result = section(text, &format!("<result number=\"{number}\""), "</result>");
        let output = unescape(section(result, "<output>", "</output>").trim());
        if !output.is_empty() {
            let cited: Vec<String> =
                output.lines().map(|line| format!("{line} [{number}]")).collect();
            parts.push(cited.join("\n"));
        }
    }
    parts.join("\n\n")
}

/// The words of the law as the document has them.
struct Law {
    title: String,
    words: String,
    path: String,
    lines: String,
}

/// Reads the law out of what the files server returned: a heading, then numbered lines.
fn law(text: &str) -> Law {
    let heading = text.lines().find(|line| line.contains(", lines ")).unwrap_or_default();
    let (path, rest) = heading.split_once(", lines ").unwrap_or(("?", "?"));
    let numbered = |line: &str| {
        let (number, words) = line.trim().split_once("  ")?;
        number.parse::<u32>().ok().map(|_| words.trim().to_owned())
    };
    let lines: Vec<String> = text.lines().filter_map(numbered).collect();
    let title = lines.iter().find(|line| line.contains("Act")).cloned().unwrap_or_default();
    let start = lines.iter().position(|line| line.starts_with("changed")).unwrap_or(lines.len());
    let words = lines.get(start..).unwrap_or_default().join(" ");
    Law {
        title,
        words: words.trim().to_owned(),
        path: path.trim().to_owned(),
        lines: rest.split(" of ").next().unwrap_or("?").to_owned(),
    }
}

/// Returns the text of the newest tool result, without its tag.
fn tool_text(request: &RecordedRequest) -> String {
    let messages = request.body.get("messages").and_then(Value::as_array);
    let last = messages.into_iter().flatten().rev().find(|message| message["role"] == "tool");
    let text = last.and_then(|message| message["content"].as_str()).unwrap_or_default();
    let inside = section(text, "<tool_result", "</tool_result>");
    unescape(inside.split_once('>').map_or(inside, |(_, inside)| inside).trim())
}

/// Reads a table written with ` | ` between the cells, without its heading and its last line.
fn table(text: &str) -> Vec<Vec<String>> {
    let rows = text.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with('('));
    rows.map(|line| line.split(" | ").map(str::to_owned).collect()).collect()
}

/// Reads `path:line:` from the first hit of a search.
fn first_hit(text: &str) -> Option<(String, u64)> {
    let mut parts = text.lines().next()?.splitn(3, ':');
    let path = parts.next()?.to_owned();
    Some((path, parts.next()?.trim().parse().ok()?))
}

fn section<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let Some((_, rest)) = text.split_once(from) else { return "" };
    rest.split_once(to).map_or(rest, |(inside, _)| inside)
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}
