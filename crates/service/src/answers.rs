//! Reads the answers to open questions in the forms in which clients write them.

use serde_json::{Map, Value, json};

use super::{Error, Result, words};
use perihelion_engine::ids::InterruptId;
use perihelion_runtime::{Answer, InterruptView};
use perihelion_star::question::kind;

/// Reads which open question is given which answer.
///
/// A map by the ids of questions answers these, and so does a text of lines `ID: answer`; `approve all` and `deny all`
/// decide all calls. Any other value answers the open question; if there are several, a list of `decisions` answers the
/// oldest ones, one by one.
pub(super) fn read(given: &Value, open: &[InterruptView]) -> Result<Vec<(InterruptId, Answer)>> {
    let pairs = pairs(given, open)?.into_iter();
    pairs
        .map(|(question, answer)| {
            let id = question.id.parse().map_err(|_| Error::Answer(question.id.clone()))?;
            Ok((id, answer_to(question, answer)?))
        })
        .collect()
}

/// Returns an answer as a map by the IDs of the questions: a process that repeats it answers no later question.
pub(super) fn named(given: &Value, open: &[InterruptView]) -> Result<Value> {
    let pairs = pairs(given, open)?.into_iter();
    Ok(Value::Object(pairs.map(|(question, answer)| (question.id.clone(), answer)).collect()))
}

fn pairs<'a>(given: &Value, open: &'a [InterruptView]) -> Result<Vec<(&'a InterruptView, Value)>> {
    let by_id = given.as_object().filter(|map| map.keys().any(|key| is_id(key)));
    if let Some(id) = unknown(given, open) {
        return Err(Error::Answer(format!("no open question has the ID {id}")));
    }
    let in_words = given.as_str().and_then(|text| words::read(text, open));
    Ok(match (by_id, in_words, open) {
        (_, _, []) => Vec::new(),
        (Some(map), _, _) => open
            .iter()
            .filter_map(|one| Some((one, map.iter().find(|(id, _)| one.is(id))?.1.clone())))
            .collect(),
        (None, Some(read), _) => read,
        (None, None, [one]) => vec![(one, given.clone())],
        (None, None, several) => match given.get("decisions").and_then(Value::as_array) {
            Some(decisions) if !decisions.is_empty() => several
                .iter()
                .zip(decisions.iter().map(|one| json!({ "decisions": [one] })))
                .collect(),
            _ => {
                let ids: Vec<&str> = several.iter().map(|one| one.id.as_str()).collect();
                let why = "several questions are open; pass answers by ID, a line `ID: answer` for each, or `approve all` or \
                           `deny all` for all calls";
                return Err(Error::Answer(format!("{why}: {}", ids.join(", "))));
            }
        },
    })
}

pub(super) fn approvals_in(answers: &[(InterruptId, Answer)], open: &[InterruptView]) -> usize {
    let is_approval = |id: &InterruptId| {
        open.iter().any(|one| one.kind == kind::APPROVAL && one.is(&id.to_string()))
    };
    answers.iter().filter(|(id, _)| is_approval(id)).count()
}

/// Returns a key of a map by the ids of questions that names no open one.
pub(super) fn unknown<'a>(given: &'a Value, open: &[InterruptView]) -> Option<&'a String> {
    let map = given.as_object().filter(|map| map.keys().any(|key| is_id(key)))?;
    map.keys().find(|key| !open.iter().any(|one| one.is(key)))
}

/// Removes from a map the answers to closed questions, if other questions are open: a process that died may have
/// recorded them.
pub(super) fn still_open(given: &Value, open: &[InterruptView]) -> Value {
    let is_open = |key: &String| open.iter().any(|one| one.is(key));
    let mut left = given.clone();
    if let Some(map) = left.as_object_mut().filter(|map| map.keys().any(is_open)) {
        map.retain(|key, _| !is_id(key) || is_open(key));
    }
    left
}

/// Returns whether a key of a map is the ID of a question, open or not.
fn is_id(key: &str) -> bool {
    key.parse::<InterruptId>().is_ok()
}

fn answer_to(question: &InterruptView, given: Value) -> Result<Answer> {
    // A program's own graph takes answers in any form.
    if !question.has_known_kind() {
        return Ok(Answer::Value(given));
    }
    if let Some(decision) = decision(&given) {
        return decided(question, decision);
    }
    Ok(match (question.kind.as_str(), given) {
        (kind::CLARIFICATION, Value::String(text)) => Answer::Message(text),
        (kind::CLARIFICATION, Value::Object(map)) => {
            let text =
                ["answer", "text", "response", "message"].iter().find_map(|key| map.get(*key));
            match text {
                Some(Value::String(text)) => Answer::Message(text.clone()),
                _ => {
                    let why = "a clarification is answered by a text or {\"answer\": TEXT}, got";
                    return Err(Error::Answer(format!("{why} {}", Value::Object(map))));
                }
            }
        }
        (kind::APPROVAL | kind::ELICITATION, Value::Bool(true)) => Answer::Approve { reason: None },
        (kind::APPROVAL | kind::ELICITATION, Value::Bool(false)) => Answer::Deny { reason: None },
        (kind::APPROVAL, Value::String(word)) => match word.trim().to_lowercase().as_str() {
            "approve" | "approved" | "accept" | "yes" | "ok" => Answer::Approve { reason: None },
            "deny" | "denied" | "reject" | "no" => Answer::Deny { reason: None },
            _ => Answer::Value(Value::String(word)),
        },
        (_, value) => Answer::Value(value),
    })
}

/// Finds the decision of a person in the forms that pages for approvals send.
fn decision(given: &Value) -> Option<&Value> {
    let first = given.get("decisions").and_then(Value::as_array).and_then(|all| all.first());
    // The older form of the same pages: a list with one object.
    let older = given.as_array().and_then(|all| all.first());
    first.or(older).or(Some(given)).filter(|one| one.get("type").is_some_and(Value::is_string))
}

fn decided(question: &InterruptView, decision: &Value) -> Result<Answer> {
    let text = |key: &str| decision.get(key).and_then(Value::as_str).map(str::to_owned);
    let message = text("message").or_else(|| text("args")).or_else(|| text("reason"));
    let unfit =
        |what: &str| Err(Error::Answer(format!("{what} to a question of kind: {}", question.kind)));
    match decision["type"].as_str().unwrap_or_default() {
        "approve" | "accept" => match question.kind.as_str() {
            kind::OUTCOME_UNKNOWN => Ok(Answer::OutcomeRetry),
            kind::CLARIFICATION => unfit("approve is not a valid answer"),
            _ => Ok(Answer::Approve { reason: message }),
        },
        "reject" | "ignore" => match question.kind.as_str() {
            kind::OUTCOME_UNKNOWN => Ok(Answer::OutcomeSkip),
            kind::CLARIFICATION => {
                Ok(Answer::Message(message.unwrap_or_else(|| "(no answer)".into())))
            }
            _ => Ok(Answer::Deny { reason: message }),
        },
        "respond" | "response" => match (question.kind.as_str(), message) {
            (kind::CLARIFICATION, Some(message)) => Ok(Answer::Message(message)),
            (kind::APPROVAL, message) => Ok(Answer::Deny { reason: message }),
            (_, Some(message)) => Ok(Answer::Value(Value::String(message))),
            (_, None) => unfit("respond needs a message in the answer"),
        },
        "edit" if question.kind == kind::APPROVAL => match edited(decision) {
            Some(arguments) => {
                let reason = text("message").or_else(|| text("reason"));
                Ok(Answer::Edit { arguments, reason })
            }
            None => unfit("edit needs the arguments as edited_action.args in the answer"),
        },
        "edit" => unfit("edit is not a valid decision"),
        other => unfit(&format!("{other} is not a valid decision")),
    }
}

/// Finds the arguments that a person wrote, in the forms that pages for approvals send.
fn edited(decision: &Value) -> Option<Map<String, Value>> {
    let places = ["/edited_action/args", "/args/args", "/arguments", "/args"];
    places.iter().find_map(|place| decision.pointer(place)?.as_object()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(kind: &str, number: u128) -> InterruptView {
        let id = uuid::Uuid::from_u128(number << 64 | 0xab).to_string();
        InterruptView { id, kind: kind.into(), agent: "mcp_agent_x".into(), payload: json!({}) }
    }

    #[test]
    fn a_map_by_ids_answers_these_and_leaves_the_others_open() {
        let questions = [open("approval", 1), open("clarification", 2)];
        for id in [questions[1].id.clone(), questions[1].id.to_uppercase()] {
            let given = json!({ id: "in May" });
            assert_eq!(still_open(&given, &questions), given);
            let answers = read(&given, &questions).unwrap();
            assert_eq!(answers.len(), 1);
            assert_eq!(answers[0].1, Answer::Message("in May".into()));
        }
    }

    #[test]
    fn a_map_with_an_id_that_is_not_open_is_refused_for_every_kind_of_question() {
        for kind in [kind::APPROVAL, kind::CLARIFICATION, kind::ELICITATION, kind::OUTCOME_UNKNOWN]
        {
            let questions = [open(kind, 1)];
            let other = uuid::Uuid::from_u128(9).to_string();
            let own = questions[0].id.clone();
            let maps =
                [json!({ (other.clone()): "x" }), json!({ (own): "x", (other.clone()): "y" })];
            for given in maps {
                let error = read(&given, &questions).unwrap_err().to_string();
                assert!(error.contains(&other), "{kind}: {error}");
            }
        }
    }

    #[test]
    fn decisions_answer_as_many_questions_as_they_are() {
        let questions = [open("approval", 1), open("approval", 2), open("approval", 3)];
        let given = json!({ "decisions": [{ "type": "approve" }, { "type": "reject", "message": "too dear" }] });
        let answers: Vec<Answer> =
            read(&given, &questions).unwrap().into_iter().map(|(_, answer)| answer).collect();
        let denied = Answer::Deny { reason: Some("too dear".into()) };
        assert_eq!(answers, [Answer::Approve { reason: None }, denied]);
    }

    /// S3.09
    #[test]
    fn edited_arguments_are_read_in_both_forms_of_the_pages() {
        let questions = [open("approval", 1)];
        let arguments = json!({ "text": "mine" });
        for decision in [
            json!({ "type": "edit", "edited_action": { "name": "notes.append", "args": arguments } }),
            json!({ "type": "edit", "args": { "action": "notes.append", "args": arguments } }),
        ] {
            let given = json!({ "decisions": [decision] });
            let answers = read(&given, &questions).unwrap();
            let arguments = arguments.as_object().cloned().unwrap();
            assert_eq!(answers[0].1, Answer::Edit { arguments, reason: None });
        }
        let without = json!({ "decisions": [{ "type": "edit" }] });
        assert!(read(&without, &questions).is_err());
    }

    #[test]
    fn a_repeated_answer_is_not_one_to_a_later_question() {
        let first = [open("interrupt", 1)];
        let later = [open("interrupt", 2)];
        let answer = named(&json!("Ada"), &first).unwrap();
        assert_eq!(read(&answer, &first).unwrap(), read(&json!("Ada"), &first).unwrap());
        let left = still_open(&answer, &later);
        assert!(unknown(&left, &later).is_some(), "{left}");
    }

    #[test]
    fn one_word_for_several_questions_is_refused_with_their_ids() {
        let questions = [open("approval", 1), open("approval", 2)];
        let error = read(&json!("yes"), &questions).unwrap_err().to_string();
        assert!(error.contains(&questions[1].id), "{error}");
    }
}
