//! The answers of the scripted model in the documents demo: about documents when they are added, and as each agent of
//! the diamond.
//!
//! The steps: two agents read in parallel, an analyst counts the changes of the country that one of them found, and the
//! answer uses all three. Texts are composed from the passages and rows in the requests.

use serde_json::{Value, json};

use super::analyst::{self, AGENT};
use super::reading::{output, section, unescape, usual};
use perihelion_llm::scripted::{RecordedRequest, Reply};
use perihelion_star::check_citations;

pub const DOCUMENTS_QUESTION: &str = "Which country's clocks do the releases say stop summer time for Ramadan, how does the database choose the names of zones, and how often did that country's clocks change from 2010 to 2025?";

/// Names of the two collections, and of the servers that search them.
pub(super) const RELEASES: &str = "releases";
pub(super) const THEORY: &str = "theory";

/// Words by which the sentences are known that answer.
const WANTED: [&str; 2] = ["observe DST during Ramadan", "most populous among locations"];

pub(super) fn respond(request: &RecordedRequest) -> Option<Reply> {
    let reply = match (request.role.as_str(), request.stage.as_deref()) {
        ("summarizer", Some("describe")) => description(request),
        ("supervisor", _) => supervisor(request),
        ("reranker", _) => ranking(request),
        (_, Some("generate")) => draft(request),
        (_, Some("interpret")) => interpretation(request),
        ("agent", Some("answer")) => return Some(Reply::text(quoted(request))),
        ("qa", _) => return Some(Reply::text(answer(request))),
        _ => usual(request)?,
    };
    Some(Reply::json(reply))
}

fn description(request: &RecordedRequest) -> Value {
    let text = unescape(request.last_text());
    let beginning = section(&text, "<document_beginning>", "</document_beginning>");
    let mut lines = beginning.lines().map(|line| line.trim_matches(['#', ' ']));
    let mut lines = lines.by_ref().filter(|line| !line.is_empty());
    let title = lines.next().unwrap_or_default().to_owned();
    let next = lines.next().unwrap_or_default();
    json!({ "title": title, "summary": format!("It begins: {next}"), "type": "text", "topics": ["time zones"] })
}

fn supervisor(request: &RecordedRequest) -> Value {
    let releases = format!("mcp_agent_{RELEASES}");
    let theory = format!("mcp_agent_{THEORY}");
    if request.contains("<result number=\"3\"") {
        return json!({
            "thought_process": "Passages and a count are there.",
            "plan": ["done: read the releases", "done: read the theory", "done: count", "answer"],
            "selected_agents": ["qa"], "tasks": [], "clarification": null, "confidence": 0.9,
        });
    }
    json!({
        "thought_process": "Two collections can be read side by side; the count stands on the country that the releases name.",
        "plan": ["read the releases", "read the theory", "count", "answer"],
        "selected_agents": [releases, theory, AGENT],
        "tasks": [
            { "id": "t1", "agent": releases, "depends_on": [], "task": "which country does not observe DST during Ramadan" },
            { "id": "t2", "agent": theory, "depends_on": [], "task": "names of timezones: the most populous among locations in a region" },
            { "id": "t3", "agent": AGENT, "depends_on": ["t1", "t2"], "task": "Count how often the clocks of the country that the releases name changed from 2010 to 2025." },
        ],
        "clarification": null, "confidence": 0.9,
    })
}

/// Splits the passages of a prompt into numbered ones, with their tags.
fn passages(text: &str) -> Vec<&str> {
    text.split("<passage number=").skip(1).collect()
}

/// Moves the passages with the wanted text to the front.
fn ranking(request: &RecordedRequest) -> Value {
    let text = unescape(request.last_text());
    let passages = passages(&text);
    let fits = |passage: &str| WANTED.iter().any(|wanted| words(passage).contains(wanted));
    let (first, rest): (Vec<usize>, Vec<usize>) =
        (1..=passages.len()).partition(|number| passages.get(number - 1).is_some_and(|p| fits(p)));
    let ranking = [first, rest].concat();
    json!({ "ranking": ranking })
}

/// Quotes the sentence that answers, with title and page, and cites its passage.
fn quoted(request: &RecordedRequest) -> String {
    let text = unescape(request.last_text());
    for (number, passage) in (1..).zip(passages(&text)) {
        let (tag, inside) = passage.split_once('>').unwrap_or((passage, ""));
        let inside = words(inside.split("</passage>").next().unwrap_or_default());
        let mut sentences = inside.split_inclusive(['.', ';']);
        let wanted = |one: &&str| WANTED.iter().any(|wanted| one.contains(wanted));
        let Some(sentence) = sentences.find(wanted) else { continue };
        let title = section(tag, "title=\"", "\"");
        let page = section(tag, "page=\"", "\"");
        let sentence = sentence.trim().trim_end_matches(['.', ';']);
        return format!("“{sentence}” ({title}, page {page}) [{number}].");
    }
    "The passages do not say it.".to_owned()
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Counts for the country that the releases were found to name.
fn draft(request: &RecordedRequest) -> Value {
    let upstream = unescape(section(request.last_text(), "<upstream>", "</upstream>"));
    let sentence = section(&upstream, "“", "”");
    let country = sentence.split(" does not observe").next().unwrap_or_default();
    let country = country.split_whitespace().last().unwrap_or_default().replace('\'', "''");
    let sql = format!(
        "SELECT c.name AS country, COUNT(*) AS changes FROM transitions AS t JOIN zone_countries AS zc ON zc.zone = t.zone \
         JOIN countries AS c ON c.code = zc.country WHERE c.name = '{country}' AND t.changed_at >= '2010-01-01' \
         AND t.changed_at < '2026-01-01' AND t.offset_before <> t.offset_after GROUP BY c.name"
    );
    json!({
        "sql": sql, "secondary_sql": null, "used_tables": ["transitions", "zone_countries", "countries"],
        "assumptions": [], "notes": "It counts the changes of the country's zones.",
    })
}

fn interpretation(request: &RecordedRequest) -> Value {
    let answer = match analyst::rows(request).first().map(Vec::as_slice) {
        Some([country, changes]) => {
            format!("The clocks of {country} changed {changes} times from 2010 to 2025.")
        }
        _ => "No change was found.".to_owned(),
    };
    json!({ "answer": answer, "highlights": [], "follow_ups": [], "chart": null })
}

fn answer(request: &RecordedRequest) -> String {
    let cited = |number: usize| {
        let output = output(request, number);
        let first = output.lines().next().unwrap_or_default();
        // The passages' own numbers mean nothing here.
        let content = check_citations(first, 0).text;
        (!content.is_empty()).then(|| format!("{} [{number}].", content.trim_end_matches('.')))
    };
    (1..=3).filter_map(cited).collect::<Vec<_>>().join("\n\n")
}
