//! Compares one run's result with the expectations of its case.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value;

use crate::suite::{AnswerRules, DataRules, Expect, NameRules};

/// Returns whether an answer contains the expected one as whole words and numbers, ignoring case and spaces.
pub fn is_expected(expected: &str, answer: &str) -> bool {
    let folded = |text: &str| text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = folded(expected);
    let answer = folded(answer);
    let is_whole = |at: usize| {
        let before = answer[..at].chars().rev();
        let after = answer[at + expected.len()..].chars();
        let first = expected.chars().next();
        !is_signed(first, before.clone())
            && !continues(first, before)
            && !continues(expected.chars().next_back(), after)
    };
    answer.match_indices(&expected).any(|(at, _)| is_whole(at))
}

/// Returns whether a number is negative: the sign before it is not between words or numbers, as in `3-5`.
fn is_signed(first: Option<char>, mut before: impl Iterator<Item = char>) -> bool {
    first.is_some_and(|c| c.is_ascii_digit())
        && matches!(before.next(), Some('-' | '−'))
        && !before.next().is_some_and(char::is_alphanumeric)
}

/// Returns whether the word or number of an edge continues beyond it: `42` continues in `1,042` and in `42.5`.
fn continues(edge: Option<char>, mut beyond: impl Iterator<Item = char>) -> bool {
    let next = beyond.next();
    // Scripts that put no space between words come later.
    let is_inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && c < '\u{e00}');
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    is_inside(edge) && is_inside(next)
        || is_digit(edge) && matches!(next, Some('.' | ',')) && is_digit(beyond.next())
}

/// Lists the unmet expectations; `report` is the object that `perihelion run --json` prints, for a run of this duration.
pub fn check(expect: &Expect, report: &Value, seconds: f64) -> Vec<String> {
    let mut found = Vec::new();
    let mut say = |text: String| found.push(text);
    // If a question to a person is expected, the run waits.
    let by_default = if expect.asks.is_some() { "interrupted" } else { "done" };
    equal("status", expect.status.as_deref().unwrap_or(by_default), report, &mut say);
    if let Some(reason) = &expect.finish_reason {
        equal("finish_reason", reason, report, &mut say);
    }
    answer(&expect.answer, report["answer"].as_str().unwrap_or_default(), &mut say);
    let results = report["results"].as_array().map_or(&[][..], Vec::as_slice);
    let agents = results.iter().filter_map(|result| result["agent"].as_str()).map(short);
    let agents: Vec<&str> = agents.collect::<BTreeSet<_>>().into_iter().collect();
    let tools: Vec<&str> = results
        .iter()
        .flat_map(|result| result["tools"].as_array().into_iter().flatten())
        .filter_map(|call| call["tool"].as_str())
        .collect();
    names(&expect.agents, &agents, ["agent", "used"], &mut say);
    names(&expect.tools, &tools, ["tool", "called"], &mut say);
    if let Some(rules) = &expect.data {
        data(rules, report, &mut say);
    }
    if let Some(least) = expect.citations_at_least {
        let cited = report["citations"].as_array().map_or(0, Vec::len);
        if cited < least {
            say(format!("citations: at least {least} expected, found {cited}"));
        }
    }
    if let Some(kind) = &expect.asks {
        let asked = report["interrupts"].as_array().into_iter().flatten();
        if !asked.clone().any(|interrupt| interrupt["kind"] == kind.as_str()) {
            say(format!("no person was asked for: {kind}"));
        }
    }
    budget(expect, report, seconds, tools.len(), &mut say);
    found
}

fn equal(key: &str, wanted: &str, report: &Value, say: &mut impl FnMut(String)) {
    let given = report[key].as_str().unwrap_or("nothing");
    if given != wanted {
        say(format!("{key}: {wanted} expected, found {given}"));
    }
}

fn names(rules: &NameRules, found: &[&str], [what, done]: [&str; 2], say: &mut impl FnMut(String)) {
    for name in rules.used.iter().filter(|name| !found.contains(&short(name))) {
        say(format!("the {what} was not {done}: {name}; {done}: {}", listed(found)));
    }
    for name in rules.not_used.iter().filter(|name| found.contains(&short(name))) {
        say(format!("the {what} was {done}: {name}"));
    }
}

fn answer(rules: &AnswerRules, text: &str, say: &mut impl FnMut(String)) {
    let folded = text.to_lowercase();
    let has = |part: &&String| folded.contains(&part.to_lowercase());
    for part in rules.contains.iter().filter(|part| !has(part)) {
        say(format!("the answer does not contain: {part}"));
    }
    for part in rules.excludes.iter().filter(has) {
        say(format!("the answer contains: {part}"));
    }
    for pattern in &rules.matches {
        // Patterns were checked when the suite was read.
        if !Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text)) {
            say(format!("the answer does not match: {pattern}"));
        }
    }
}

/// Finds the table of an answer: the one asked for, or the first of a result.
fn table(report: &Value) -> Option<&Value> {
    let of_results = || {
        let results = report["results"].as_array()?;
        results.iter().map(|result| &result["tabular"]).find(|table| table.is_object())
    };
    Some(&report["data"]).filter(|table| table.is_object()).or_else(of_results)
}

fn data(rules: &DataRules, report: &Value, say: &mut impl FnMut(String)) {
    let Some(table) = table(report) else {
        return say("there is no table".to_owned());
    };
    let columns: Vec<&str> =
        table["columns"].as_array().into_iter().flatten().filter_map(column).collect();
    for name in &rules.columns {
        if !columns.iter().any(|column| column.eq_ignore_ascii_case(name)) {
            say(format!("the table has no column: {name}; it has: {}", listed(&columns)));
        }
    }
    let rows = table["rows"].as_array().map_or(&[][..], Vec::as_slice);
    if rules.rows_at_least.is_some_and(|least| rows.len() < least) {
        say(format!("the table has too few rows: {}", rows.len()));
    }
    if rules.rows_at_most.is_some_and(|most| rows.len() > most) {
        say(format!("the table has too many rows: {}", rows.len()));
    }
    for wanted in &rules.rows {
        let is_there = |row: &Value| {
            let cells: Vec<String> = row.as_array().into_iter().flatten().map(cell).collect();
            wanted.iter().all(|value| cells.iter().any(|cell| cell == value))
        };
        if !rows.iter().any(is_there) {
            say(format!("the table has no row with: {}", wanted.join(", ")));
        }
    }
}

fn column(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value["name"].as_str())
}

fn cell(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn budget(
    expect: &Expect,
    report: &Value,
    seconds: f64,
    calls: usize,
    say: &mut impl FnMut(String),
) {
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let usage = &report["usage"];
    let bounds = [
        (
            "tokens",
            expect.at_most.tokens.map(|most| most as f64),
            number(&usage["input_tokens"]) + number(&usage["output_tokens"]),
        ),
        ("steps", expect.at_most.steps.map(|most| most as f64), number(&report["steps"])),
        ("tool calls", expect.at_most.tool_calls.map(|most| most as f64), calls as f64),
        ("US dollars", expect.at_most.cost_usd, number(&report["cost_usd"])),
        ("seconds", expect.at_most.seconds, seconds),
    ];
    for (what, most, spent) in bounds {
        if let Some(most) = most.filter(|most| spent > *most) {
            say(format!("{what}: at most {most}, spent {spent}"));
        }
    }
}

/// Returns an agent's name without what all of them begin with.
fn short(name: &str) -> &str {
    name.strip_prefix("mcp_agent_").unwrap_or(name)
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report() -> Value {
        json!({
            "status": "done", "finish_reason": "answered", "answer": "Blue sold best: 2,328.60 [1].",
            "results": [{
                "agent": "mcp_agent_shop",
                "tools": [{ "tool": "shop.query", "arguments": {}, "is_error": false }],
                "tabular": { "columns": ["album", "sales"], "rows": [["Blue", 2328.6], ["Red", 12]] },
            }],
            "citations": [{ "number": 1 }], "interrupts": [], "usage": { "input_tokens": 900, "output_tokens": 100 },
            "steps": 4,
        })
    }

    fn expect(yaml: &str) -> Expect {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn a_run_that_is_as_expected_has_no_findings() {
        let expect = expect(
            "{ finish_reason: answered, answer: { contains: [blue], excludes: [sorry], matches: ['2,?328'] }, \
             agents: { used: [shop], not_used: [mcp_agent_mail] }, tools: { called: [shop.query], not_called: [mail.send] }, \
             data: { columns: [Album], rows_at_least: 2, rows: [[Blue, '2328.6']] }, citations_at_least: 1, \
             at_most: { tokens: 1000, steps: 4, tool_calls: 1, seconds: 3 } }",
        );
        assert_eq!(check(&expect, &report(), 2.0), [] as [String; 0]);
    }

    #[test]
    fn each_broken_expectation_is_named() {
        for (yaml, words) in [
            ("{ status: failed }", "status: failed expected, found done"),
            ("{ finish_reason: limit }", "found answered"),
            ("{ answer: { contains: [Green] } }", "does not contain: Green"),
            ("{ answer: { excludes: [BLUE] } }", "contains: BLUE"),
            ("{ answer: { matches: ['^2'] } }", "does not match: ^2"),
            ("{ agents: { used: [mail] } }", "not used: mail"),
            ("{ agents: { not_used: [shop] } }", "used: shop"),
            ("{ tools: { called: [mail.send] } }", "called: shop.query"),
            ("{ tools: { not_called: [shop.query] } }", "called: shop.query"),
            ("{ data: { columns: [price] } }", "no column: price; it has: album, sales"),
            ("{ data: { rows_at_least: 3 } }", "too few rows: 2"),
            ("{ data: { rows_at_most: 1 } }", "too many rows: 2"),
            ("{ data: { rows: [[Green]] } }", "no row with: Green"),
            ("{ citations_at_least: 2 }", "at least 2 expected, found 1"),
            ("{ asks: approval }", "no person was asked for: approval"),
            ("{ at_most: { tokens: 999 } }", "tokens: at most 999, spent 1000"),
            ("{ at_most: { steps: 3 } }", "steps: at most 3"),
            ("{ at_most: { tool_calls: 0 } }", "tool calls: at most 0"),
            ("{ at_most: { seconds: 1 } }", "seconds: at most 1"),
        ] {
            let found = check(&expect(yaml), &report(), 2.0);
            assert!(found.iter().any(|finding| finding.contains(words)), "{yaml}: {found:?}");
        }
    }

    #[test]
    fn an_expected_answer_may_stand_in_a_longer_one() {
        for (expected, answer, is_met) in [
            ("42", "It is 42 [1].", true),
            ("Africa/Casablanca  46", "africa/casablanca\n46", true),
            ("43", "It is 42.", false),
            ("42", "It is 1420.", false),
            ("42", "It is 1,042.", false),
            ("42", "It is 42.5.", false),
            ("42", "Of 142 there are 42, no more.", true),
            ("5", "It fell by -5 degrees.", false),
            ("5", "(−5)", false),
            ("5", "Between 3-5.", true),
            ("-5", "It is -5.", true),
            ("man", "A woman.", false),
            ("東京", "首都は東京です", true),
            ("a longer answer", "a longer", false),
        ] {
            assert_eq!(is_expected(expected, answer), is_met, "{expected}");
        }
    }

    #[test]
    fn a_failed_run_never_passes_by_default() {
        let failed = json!({ "status": "failed", "answer": null });
        assert!(!check(&expect("{ at_most: { tokens: 9 } }"), &failed, 0.0).is_empty());
    }
}
