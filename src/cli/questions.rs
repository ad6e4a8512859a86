//! Open questions for a person: the question, the agent, and the commands that answer it.

use reqwest::Url;
use serde_json::{Value, json};

use super::escape::{shown, shown_json, shown_line};
use super::globals::quoted;
use perihelion_runtime::InterruptView;
use perihelion_star::question::{Approval, Clarification, Elicitation, Question, kind};

pub(super) fn explain(open: &[InterruptView], thread: &str, invocation: &str) -> String {
    let mut text = match open.len() {
        1 => format!("thread {thread} needs an answer from a person:\n"),
        count => format!("thread {thread} needs {count} answers from a person:\n"),
    };
    for one in open {
        text.push_str(&asked(one));
        text.push_str("answer with:\n");
        let which = match open.len() {
            1 => String::new(),
            _ => format!(" --interrupt {}", one.id),
        };
        for answer in answers(one) {
            text.push_str(&format!("  {invocation} resume {thread}{which} {answer}\n"));
        }
    }
    text
}

/// Words one question, without the ways to answer it.
pub(super) fn asked(one: &InterruptView) -> String {
    let by = if one.agent.is_empty() { String::new() } else { format!(", {}", one.agent) };
    let mut text = format!("\n{}{by}\n", one.kind);
    for line in body(one).lines() {
        text.push_str(&format!("  {}\n", shown(line)));
    }
    text
}

fn body(one: &InterruptView) -> String {
    match one.question() {
        Question::Clarification(Clarification { question, options, .. }) => {
            let options = options.iter().map(|option| format!("\n- {}", shown_line(option)));
            shown_line(&question) + &options.collect::<String>()
        }
        Question::Approval(approval) => call_to_approve(&approval),
        Question::OutcomeUnknown(unknown) => {
            let arguments = unknown.request.get("arguments").unwrap_or(&unknown.request);
            format!(
                "The outcome of this {} call is unknown: {}\n{}",
                shown_line(&unknown.tool),
                shown_line(&unknown.reason),
                indented(arguments)
            )
        }
        Question::Elicitation(elicitation) => asked_by_server(&elicitation),
        Question::Other(payload) => indented(&payload),
    }
}

fn call_to_approve(approval: &Approval) -> String {
    let tool = shown_line(&approval.tool);
    let arguments = json!(approval.arguments);
    let server = match approval.server.as_str() {
        "" => String::new(),
        server => format!("{}.", shown_line(server)),
    };
    let mut text = format!("Call {server}{tool} with these arguments:\n{}", indented(&arguments));
    for reason in &approval.reasons {
        text.push_str(&format!("\nThis needs approval because {}", shown_line(reason)));
    }
    if !approval.expires_at.is_empty() {
        text.push_str(&format!("\nAnswer before {}", shown_line(&approval.expires_at)));
    }
    if !approval.description.is_empty() {
        text.push_str(&format!("\n({})", shown_line(&approval.description)));
    }
    text
}

/// Words a server's question; an address is shown whole, with its host apart, and never opened from here.
fn asked_by_server(asked: &Elicitation) -> String {
    let server = shown_line(&asked.server);
    let tool = shown_line(&asked.tool);
    let mut text = format!("{server}.{tool} asks: {}", shown_line(&asked.message));
    if let Some(url) = &asked.url {
        let read = Url::parse(url).ok();
        let host = read.as_ref().and_then(Url::host_str).unwrap_or("its host");
        let url = shown_line(url);
        text.push_str(&format!("\nIf you trust {host}, open this address yourself:\n{url}"));
    }
    for (name, field) in fields(asked) {
        let kind = field.get("type").and_then(Value::as_str).unwrap_or("value");
        let words = ["description", "title"].iter().find_map(|key| field.get(*key)?.as_str());
        let words = words.map(|words| format!(": {}", shown_line(words))).unwrap_or_default();
        let needed = if is_required(asked, name) { ", required" } else { "" };
        text.push_str(&format!("\n{} ({kind}{needed}){words}", shown_line(name)));
        if let Some(choices) = choices(field) {
            text.push_str(&format!("\n  one of {}", shown_line(&choices)));
        }
    }
    match &asked.warning {
        Some(warning) => format!("{text}\n({})", shown_line(warning)),
        None => text,
    }
}

fn fields(asked: &Elicitation) -> impl Iterator<Item = (&String, &Value)> {
    let schema = asked.requested_schema.as_ref();
    schema.and_then(|schema| schema.get("properties")?.as_object()).into_iter().flatten()
}

fn is_required(asked: &Elicitation, name: &str) -> bool {
    let schema = asked.requested_schema.as_ref();
    let required = schema.and_then(|schema| schema.get("required")?.as_array());
    required.is_some_and(|names| names.iter().any(|one| one == name))
}

/// Lists the choices of a field, or of each of its items, if it has any.
fn choices(field: &Value) -> Option<String> {
    if let Some(items) = field.get("items") {
        return choices(items);
    }
    let all = match field.get("oneOf").or(field.get("anyOf")) {
        Some(named) => named.as_array()?.iter().filter_map(|one| one.get("const")).collect(),
        None => field.get("enum")?.as_array()?.iter().collect::<Vec<&Value>>(),
    };
    Some(all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

/// Returns a form with a place for each field, to be typed over.
fn form(asked: &Elicitation) -> String {
    let place = |(name, field): (&String, &Value)| {
        let kind = field.get("type").and_then(Value::as_str).unwrap_or("value");
        let value = match kind {
            "boolean" => Value::Bool(true),
            "integer" | "number" => Value::from(0),
            "array" => Value::Array(Vec::new()),
            _ => Value::from("…"),
        };
        (name.clone(), field.get("default").cloned().unwrap_or(value))
    };
    Value::Object(fields(asked).map(place).collect()).to_string()
}

fn indented(value: &Value) -> String {
    // What is shown is what is sent.
    shown_json(&serde_json::to_string_pretty(value).unwrap_or_default())
}

fn answers(one: &InterruptView) -> Vec<String> {
    let fixed: &[&str] = match (one.kind.as_str(), one.question()) {
        (kind::CLARIFICATION, _) => &["--message 'TEXT'"],
        (kind::APPROVAL, _) => {
            &["--approve", "--approve --reason 'INSTRUCTIONS'", "--deny --reason 'REASON'"]
        }
        (kind::OUTCOME_UNKNOWN, _) => {
            &["--outcome done --result 'RESULT'", "--outcome retry", "--outcome skip"]
        }
        (_, Question::Elicitation(asked)) if asked.url.is_some() => &["--approve", "--deny"],
        (_, Question::Elicitation(asked)) => {
            let form = quoted(&shown_json(&form(&asked)));
            return vec![format!("--answer {form}"), "--deny".to_owned()];
        }
        _ => &["--answer 'TEXT OR JSON'"],
    };
    fixed.iter().map(|one| (*one).to_owned()).collect()
}

#[cfg(test)]
mod tests {
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
    fn a_call_for_approval_is_shown_with_all_its_hidden_characters() {
        let arguments =
            json!({ "path": "/srv/q1\u{e0041}\u{202e}", "memo\u{200b}": "ok\u{1b}[2J" });
        let asked = asked("approval", json!({ "tool": "send", "arguments": arguments }));
        let text = explain(&[asked], "t", "perihelion");
        for hidden in ["\\udb40\\udc41", "\\u202e", "memo\\u200b", "\\u001b[2J"] {
            assert!(text.contains(hidden), "{hidden}: {text}");
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
            asked(
                "elicitation",
                json!({
                    "server": "shop", "tool": "order", "message": "Where to?", "mode": "form",
                    "requested_schema": {
                        "type": "object", "required": ["city"],
                        "properties": {
                            "city": { "type": "string", "description": "Where it goes" },
                            "speed": { "type": "string", "enum": ["fast", "slow"], "default": "slow" },
                        },
                    },
                    "warning": "the call is made again",
                }),
            ),
            asked(
                "elicitation",
                json!({
                    "server": "bank", "tool": "pay", "message": "Log in", "mode": "url",
                    "url": "https://bank.example@evil.example/login?next=1",
                }),
            ),
            asked("vote", json!({ "choices": ["a", "b"] })),
        ];
        insta::assert_snapshot!(explain(&open, "THREAD", "perihelion --database sqlite:p.db"));
        insta::assert_snapshot!(explain(&open[..1], "THREAD", "perihelion"));
    }
}
