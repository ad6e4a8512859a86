//! Open questions, put so that a person can answer them: what is asked, by whom, and the command to type.

use serde_json::Value;

use super::output::{one_line, plain};
use crate::runtime::InterruptView;

/// Explains the open questions of a thread; `invocation` begins the commands.
pub(super) fn explain(open: &[InterruptView], thread: &str, invocation: &str) -> String {
    let mut text = match open.len() {
        1 => format!("the thread {thread} waits for a person:\n"),
        count => format!("the thread {thread} waits for a person: {count} questions\n"),
    };
    for one in open {
        let by = if one.agent.is_empty() { String::new() } else { format!(", {}", one.agent) };
        text.push_str(&format!("\n{}{by}\n", one.kind));
        for line in body(one).lines() {
            text.push_str(&format!("  {}\n", plain(line)));
        }
        text.push_str("answer with:\n");
        let which = match open.len() {
            1 => String::new(),
            _ => format!(" --interrupt {}", one.id),
        };
        for answer in answers(&one.kind) {
            text.push_str(&format!("  {invocation} resume {thread}{which} {answer}\n"));
        }
    }
    text
}

fn body(one: &InterruptView) -> String {
    let get = |key: &str| one.payload.get(key);
    let word = |key: &str| get(key).and_then(Value::as_str).map(one_line);
    match one.kind.as_str() {
        "clarification" => word("question"),
        "approval" => word("tool").map(|tool| {
            let server = word("server").map(|server| format!("{server}.")).unwrap_or_default();
            let call = format!("wants to call {server}{tool} with\n{}", indented(get("arguments")));
            let reasons = get("reasons").and_then(Value::as_array).into_iter().flatten();
            let reasons: Vec<String> = reasons
                .filter_map(Value::as_str)
                .map(|one| format!("because {}", one_line(one)))
                .collect();
            let until = word("expires_at").map(|time| format!("can be answered until {time}"));
            let call =
                std::iter::once(call).chain(reasons).chain(until).collect::<Vec<_>>().join("\n");
            match word("description") {
                Some(description) if !description.is_empty() => format!("{call}\n({description})"),
                _ => call,
            }
        }),
        "outcome_unknown" => word("tool").map(|tool| {
            let arguments = get("request").and_then(|request| request.get("arguments"));
            format!(
                "nobody knows whether this call of {tool} happened: {}\n{}",
                word("reason").unwrap_or_default(),
                indented(arguments.or(get("request")))
            )
        }),
        _ => None,
    }
    .unwrap_or_else(|| indented(Some(&one.payload)))
}

fn indented(value: Option<&Value>) -> String {
    value.map(|value| serde_json::to_string_pretty(value).unwrap_or_default()).unwrap_or_default()
}

/// Returns the options that answer a kind of question.
fn answers(kind: &str) -> &'static [&'static str] {
    match kind {
        "clarification" => &["--message 'TEXT'"],
        "approval" => &["--approve", "--approve --reason 'WHAT TO MIND'", "--deny --reason 'WHY'"],
        "outcome_unknown" => {
            &["--outcome done --result 'WHAT IT GAVE'", "--outcome retry", "--outcome skip"]
        }
        _ => &["--answer 'TEXT OR JSON'"],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(kind: &str, payload: Value) -> InterruptView {
        InterruptView {
            id: format!("id-of-{kind}"),
            kind: kind.into(),
            agent: "mcp_agent_mail".into(),
            payload,
        }
    }

    #[test]
    fn every_kind_of_question_comes_with_the_commands_that_answer_it() {
        let open = [
            asked("clarification", json!({ "question": "Which year?\u{1b}[2J" })),
            asked(
                "approval",
                json!({
                    "agent": "mcp_agent_mail", "server": "mail", "tool": "send",
                    "arguments": { "to": "a@example.org" }, "description": "Sends a mail",
                }),
            ),
            asked(
                "outcome_unknown",
                json!({
                    "tool": "mail.send", "request": { "arguments": { "to": "a@example.org" } },
                    "reason": "the server went away",
                }),
            ),
            asked("vote", json!({ "choices": ["a", "b"] })),
        ];
        insta::assert_snapshot!(explain(&open, "THREAD", "perihelion --database sqlite:p.db"));
        insta::assert_snapshot!(explain(&open[..1], "THREAD", "perihelion"));
    }
}
