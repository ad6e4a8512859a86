//! Reads a person's answers in text form, if several questions are open.

use std::collections::HashSet;

use serde_json::Value;

use perihelion_runtime::InterruptView;
use perihelion_star::question::kind;

/// Reads `approve all`, `deny all`, or one line `ID: answer` per question; `None` for another text.
pub(super) fn read<'a>(
    text: &str,
    open: &'a [InterruptView],
) -> Option<Vec<(&'a InterruptView, Value)>> {
    decided_all(text, open).or_else(|| by_line(text, open))
}

/// Reads one decision on all calls that wait for approval; questions of other kinds stay open.
fn decided_all<'a>(
    text: &str,
    open: &'a [InterruptView],
) -> Option<Vec<(&'a InterruptView, Value)>> {
    let text = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let word = match words.as_slice() {
        [word @ ("approve" | "deny"), "all"] => *word,
        _ => return None,
    };
    let calls = open.iter().filter(|one| one.kind == kind::APPROVAL);
    let decided: Vec<_> = calls.map(|one| (one, Value::String(word.to_owned()))).collect();
    (!decided.is_empty()).then_some(decided)
}

fn by_line<'a>(text: &str, open: &'a [InterruptView]) -> Option<Vec<(&'a InterruptView, Value)>> {
    let mut answered = HashSet::new();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let read = |line: &str| {
        let (id, answer) = line.trim_start_matches(['-', '*', ' ']).split_once(':')?;
        let id = unquoted(id);
        let one = open.iter().find(|one| one.is(id))?;
        answered.insert(one.id.clone()).then(|| (one, value(unquoted(answer))))
    };
    let read: Option<Vec<_>> = lines.map(read).collect();
    read.filter(|read| !read.is_empty())
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches('`').trim()
}

fn value(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => object,
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn open(kinds: &[&str]) -> Vec<InterruptView> {
        let one = |(number, kind): (usize, &&str)| InterruptView {
            id: format!("id-{number}"),
            kind: (*kind).to_owned(),
            agent: "notes".into(),
            payload: json!({}),
        };
        kinds.iter().enumerate().map(one).collect()
    }

    fn pairs(text: &str, open: &[InterruptView]) -> Option<Vec<(String, Value)>> {
        let read = read(text, open)?;
        Some(read.into_iter().map(|(one, answer)| (one.id.clone(), answer)).collect())
    }

    #[test]
    fn one_word_for_all_decides_only_the_calls() {
        let questions = open(&["approval", "elicitation", "approval"]);
        for text in ["approve all", " Approve  all.\n", "APPROVE ALL!"] {
            let wanted = vec![("id-0".into(), json!("approve")), ("id-2".into(), json!("approve"))];
            assert_eq!(pairs(text, &questions), Some(wanted), "{text}");
        }
        assert_eq!(pairs("deny all", &questions[1..2]), None);
        assert_eq!(pairs("approve all of them but the first", &questions), None);
    }

    #[test]
    fn each_line_answers_the_question_with_the_id_at_its_start() {
        let questions = open(&["approval", "outcome_unknown"]);
        let text = "- `id-1`: {\"outcome\": \"skip\"}\n\n id-0: `deny`";
        let wanted =
            vec![("id-1".into(), json!({ "outcome": "skip" })), ("id-0".into(), json!("deny"))];
        assert_eq!(pairs(text, &questions), Some(wanted));
        for unread in
            ["id-7: deny", "id-0: deny\nid-0: approve", "id-0: deny\nas I said", "", "approve"]
        {
            assert_eq!(pairs(unread, &questions), None, "{unread}");
        }
    }
}
