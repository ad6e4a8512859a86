//! Draws the differences between two values: short ones next to each other, texts line by line.

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::output::brief;
use perihelion_runtime::Change;

/// Changes shown of one difference; `--json` has all.
const SHOWN: usize = 12;
/// Lines shown of one text.
const LINES: usize = 24;
/// Characters shown of a line.
const WIDTH: usize = 140;
/// Characters of a short value.
const SHORT: usize = 70;

/// Draws changes, each line after `margin`; `title` precedes each path.
pub(super) fn draw(changes: &[Change], title: &str, margin: &str) -> String {
    let mut text = String::new();
    for change in changes.iter().take(SHOWN) {
        let place = [title, &change.path].into_iter().filter(|part| !part.is_empty());
        let place = place.collect::<Vec<_>>().join(" ");
        text.push_str(&one(&place, change, margin));
    }
    if changes.len() > SHOWN {
        let more = changes.len() - SHOWN;
        text.push_str(&format!("{margin}… and {more} more in {title}; --json shows all\n"));
    }
    text
}

fn one(place: &str, change: &Change, margin: &str) -> String {
    match (&change.before, &change.after) {
        (Some(Value::String(before)), Some(Value::String(after)))
            if [before, after].iter().any(|side| side.contains('\n') || side.len() > SHORT) =>
        {
            format!("{margin}{place}\n{}", lines(before, after, margin))
        }
        (Some(before), Some(after)) => {
            format!("{margin}{place}: {} → {}\n", short(before), short(after))
        }
        (Some(before), None) => format!("{margin}- {place}: {}\n", short(before)),
        (None, Some(after)) => format!("{margin}+ {place}: {}\n", short(after)),
        (None, None) => String::new(),
    }
}

fn short(value: &Value) -> String {
    brief(&value.to_string(), SHORT)
}

fn lines(before: &str, after: &str, margin: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut drawn = Vec::new();
    for (nth, group) in diff.grouped_ops(1).iter().enumerate() {
        if nth > 0 {
            drawn.push("  ⋮".to_owned());
        }
        for op in group {
            let from = first_difference(&diff, op);
            for change in diff.iter_changes(op) {
                let (sign, from) = match change.tag() {
                    ChangeTag::Equal => (' ', 0),
                    ChangeTag::Delete => ('-', from),
                    ChangeTag::Insert => ('+', from),
                };
                drawn.push(format!("{sign} {}", window(change.value(), from)));
            }
        }
    }
    let more = drawn.len().saturating_sub(LINES);
    drawn.truncate(LINES);
    if more > 0 {
        drawn.push(format!("… {more} more lines"));
    }
    drawn.iter().map(|line| format!("{}\n", format!("{margin}  {line}").trim_end())).collect()
}

/// Returns the character at which two lines in each other's place part.
fn first_difference(diff: &TextDiff<'_, '_, '_, str>, op: &similar::DiffOp) -> usize {
    let side = |tag: ChangeTag| {
        diff.iter_changes(op).find(|change| change.tag() == tag).map(|change| change.value())
    };
    match (side(ChangeTag::Delete), side(ChangeTag::Insert)) {
        (Some(one), Some(other)) => {
            one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
        }
        _ => 0,
    }
}

/// Cuts a line to the width of the terminal, around the different character.
fn window(line: &str, from: usize) -> String {
    let line = line.trim_end_matches('\n');
    let start = if from > WIDTH / 2 { from - WIDTH / 4 } else { 0 };
    let rest: String = line.chars().skip(start).collect();
    let shown = if rest.trim().is_empty() { String::new() } else { brief(&rest, WIDTH) };
    if start > 0 { format!("…{shown}") } else { shown }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_values_are_shown_in_two_columns_and_texts_line_by_line() {
        let change = |before: Value, after: Value| Change {
            path: "a".into(),
            before: Some(before),
            after: Some(after),
        };
        let drawn = draw(&[change(json!(1), json!("x"))], "state", "  ");
        assert_eq!(drawn, "  state a: 1 → \"x\"\n");
        let before = "one\ntwo\nthree\nfour\n";
        let after = "one\ntwo\n3\nfour\n";
        let drawn = draw(&[change(json!(before), json!(after))], "", "");
        assert_eq!(drawn, "a\n    two\n  - three\n  + 3\n    four\n");
        let long = |end: &str| format!("{}{end}", "x".repeat(500));
        let drawn = draw(&[change(json!(long("yes")), json!(long("no")))], "", "");
        assert!(drawn.contains("xyes\n") && drawn.contains("xno\n"), "{drawn}");
    }
}
