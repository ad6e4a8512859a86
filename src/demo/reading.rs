//! Reads what tools returned out of a request, as a model would.

use serde_json::{Value, json};

use perihelion_llm::scripted::RecordedRequest;

/// Returns the texts of the tool results in a request, without their tags, oldest first.
pub(super) fn tool_results(request: &RecordedRequest) -> Vec<String> {
    let messages = request.body.get("messages").and_then(Value::as_array);
    let of_tools = messages.into_iter().flatten().filter(|message| message["role"] == "tool");
    of_tools
        .map(|message| {
            let text = message["content"].as_str().unwrap_or_default();
            let inside = section(text, "<tool_result", "</tool_result>");
            unescape(inside.split_once('>').map_or(inside, |(_, inside)| inside).trim())
        })
        .collect()
}

/// Reads a table written with ` | ` between the cells, without its heading and its closing line.
pub(super) fn rows(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with('('));
    lines.map(|line| line.split(" | ").map(str::to_owned).collect()).collect()
}

/// Finds the search hit with these words and writes it as a quotation with its place.
pub(super) fn hit(text: &str, words: &str) -> String {
    let found = text.lines().find(|line| line.contains(words)).unwrap_or_default();
    let mut parts = found.trim().splitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(path), Some(line), Some(quoted)) => {
            format!("“{}” ({path}, line {line}).", quoted.trim().trim_end_matches([';', '.']))
        }
        _ => String::new(),
    }
}

pub(super) fn output(request: &RecordedRequest, number: usize) -> String {
    let results = section(request.last_text(), "<results>", "</results>");
    let result = section(results, &format!("<result number=\"{number}\""), "</result>");
    unescape(section(result, "<output>", "</output>").trim())
}

/// Returns the answers of classifiers, analysts and reflectors without problems.
pub(super) fn usual(request: &RecordedRequest) -> Option<Value> {
    Some(match (request.role.as_str(), request.stage.as_deref()) {
        ("classifier", _) => json!({
            "intent": "DATA_QA", "confidence": 0.95, "reason": "The tables hold it.", "next": "clarify",
        }),
        (_, Some("clarify")) => json!({ "needed": false, "questions": [], "assumptions": [] }),
        (_, Some("review")) => json!({ "approved": true, "problems": [] }),
        ("reflector", _) => {
            json!({ "status": "APPROVED", "refined_output": null, "feedback": null })
        }
        _ => return None,
    })
}

pub(super) fn section<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let Some((_, rest)) = text.split_once(from) else { return "" };
    rest.split_once(to).map_or(rest, |(inside, _)| inside)
}

pub(super) fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}
