//! The open questions as text, with instructions for answers in text form.

use serde_json::Value;

use perihelion_mcp as mcp;
use perihelion_runtime::InterruptView;
use perihelion_star::question::{Question, kind};

/// Writes questions for a person, with invisible characters made visible. If there are several, each has its ID, with
/// which its answer begins.
pub(super) fn in_words(all: &[InterruptView]) -> String {
    mcp::shown(&questions_text(all))
}

fn questions_text(all: &[InterruptView]) -> String {
    if let [one] = all {
        return match how(one) {
            Some(how) => format!("{} Answer {how}.", asked(one)),
            None => asked(one),
        };
    }
    let each = all.iter().map(|one| {
        let how = how(one).unwrap_or("in your words");
        format!("{}\nAnswer, after `{}: `, {how}.", asked(one), one.id)
    });
    let mut text: Vec<String> = each.collect();
    if let Some(first) = all.iter().find(|one| one.kind == kind::APPROVAL) {
        let id = &first.id;
        text.push(format!(
            "Send one line per answer, such as `{id}: approve`, or decide all calls with `approve all` or `deny all`."
        ));
    } else if let Some(first) = all.first() {
        text.push(format!("Send one line per answer: `{}: …`.", first.id));
    }
    text.join("\n\n")
}

fn asked(one: &InterruptView) -> String {
    let shown_whole = || format!("The agent {} asks: {}", one.agent, one.payload);
    match one.question() {
        Question::Clarification(asked) => asked.question,
        Question::Approval(call) => format!(
            "The agent {} asks for approval of this call: {} with {}.",
            one.agent,
            call.name(),
            Value::Object(call.arguments),
        ),
        Question::OutcomeUnknown(call) => {
            format!("The outcome of this call is unknown: {}.", call.tool)
        }
        Question::Elicitation(asked) if !asked.message.is_empty() => asked.message,
        Question::Elicitation(_) => shown_whole(),
        // A program's own graph can add a message to its question.
        Question::Other(payload) => match payload.get("message").and_then(Value::as_str) {
            Some(message) if !message.is_empty() => message.to_owned(),
            _ => shown_whole(),
        },
    }
}

/// Describes how to answer a question; `None` for a free answer.
fn how(one: &InterruptView) -> Option<&'static str> {
    Some(match one.kind.as_str() {
        kind::CLARIFICATION => return None,
        kind::APPROVAL => "`approve` or `deny`",
        kind::OUTCOME_UNKNOWN => {
            "{\"outcome\": \"retry\"}, {\"outcome\": \"skip\"} or {\"outcome\": \"done\", \"result\": …}"
        }
        _ => "with a JSON object",
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn approval(number: u128) -> InterruptView {
        InterruptView {
            id: uuid::Uuid::from_u128(number).to_string(),
            kind: "approval".into(),
            agent: "mcp_agent_notes".into(),
            payload: json!({ "server": "notes", "tool": "append_note", "arguments": { "text": "x" } }),
        }
    }

    #[test]
    fn a_single_question_explains_how_to_answer_it_without_an_id() {
        let text = in_words(&[approval(1)]);
        assert!(text.ends_with("with {\"text\":\"x\"}. Answer `approve` or `deny`."), "{text}");
        assert!(!text.contains("0000"), "{text}");
    }

    #[test]
    fn invisible_characters_are_written_out_in_every_kind_of_question() {
        let hidden = "pay\u{202e}1\u{200b}0\u{e0041}";
        let payloads = [
            (
                "approval",
                json!({ "server": "notes", "tool": "append", "arguments": { hidden: [hidden] } }),
            ),
            ("approval", json!({ "server": hidden })),
            ("clarification", json!({ "question": hidden })),
            ("outcome_unknown", json!({ "tool": hidden })),
            ("elicitation", json!({ "message": hidden })),
            ("other", json!({ "message": hidden })),
            ("other", json!([hidden])),
        ];
        for (kind, payload) in payloads {
            let one = InterruptView { kind: kind.into(), payload, ..approval(1) };
            for text in
                [in_words(std::slice::from_ref(&one)), in_words(&[one.clone(), approval(2)])]
            {
                assert!(!text.contains(perihelion_mcp::is_invisible), "{kind}: {text:?}");
                assert!(text.contains("\\u{202e}"), "{kind}: {text}");
            }
        }
    }

    #[test]
    fn a_damaged_question_is_shown_as_it_is() {
        let damaged = InterruptView { payload: json!({ "server": 7 }), ..approval(1) };
        let text = in_words(&[damaged]);
        assert!(text.starts_with("The agent mcp_agent_notes asks: {\"server\":7}"), "{text}");
        assert!(text.ends_with("Answer `approve` or `deny`."), "{text}");
    }

    #[test]
    fn several_questions_list_the_ids_that_answers_must_name() {
        let questions = [approval(1), approval(2)];
        let text = in_words(&questions);
        for one in &questions {
            assert!(text.contains(&format!("`{}: `", one.id)), "{text}");
        }
        assert!(text.contains("`approve all`"), "{text}");
    }
}
