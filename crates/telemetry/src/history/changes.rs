//! The differences between two JSON values.

use serde::Serialize;
use serde_json::Value;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// One place where two values differ; a side without the place has `None` there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Such as `messages[1].content`; empty for the whole value.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Lists where two values differ, as deep as both have the same shape.
///
/// Items of arrays are aligned by Myers' algorithm ("An O(ND) Difference Algorithm", 1986), so that an inserted item
/// does not make all later ones differ. A path counts in the first value, and in the second one for items that only
/// that one has.
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    walk("", before, after, &mut found);
    found
}

fn walk(path: &str, before: &Value, after: &Value, found: &mut Vec<Change>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            for (name, value) in one {
                let path = field(path, name);
                match other.get(name) {
                    Some(later) => walk(&path, value, later, found),
                    None => found.push(Change { path, before: Some(value.clone()), after: None }),
                }
            }
            for (name, value) in other.iter().filter(|(name, _)| !one.contains_key(*name)) {
                let path = field(path, name);
                let after = Some(value.clone());
                found.push(Change { path, before: None, after });
            }
        }
        (Value::Array(one), Value::Array(other)) => items(path, one, other, found),
        _ => found.push(Change {
            path: path.to_owned(),
            before: Some(before.clone()),
            after: Some(after.clone()),
        }),
    }
}

fn items(path: &str, one: &[Value], other: &[Value], found: &mut Vec<Change>) {
    let texts = |items: &[Value]| items.iter().map(Value::to_string).collect::<Vec<_>>();
    for op in capture_diff_slices(Algorithm::Myers, &texts(one), &texts(other)) {
        let before = op.old_range();
        let after = op.new_range();
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        // Items in each other's place are compared, the others are gone or new.
        let shared = before.len().min(after.len());
        for n in 0..shared {
            let at = before.start + n;
            walk(&format!("{path}[{at}]"), &one[at], &other[after.start + n], found);
        }
        for at in before.skip(shared) {
            let path = format!("{path}[{at}]");
            let before = Some(one[at].clone());
            found.push(Change { path, before, after: None });
        }
        for at in after.skip(shared) {
            let path = format!("{path}[{at}]");
            let after = Some(other[at].clone());
            found.push(Change { path, before: None, after });
        }
    }
}

fn field(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_differences_are_listed_each_with_its_path() {
        let before = json!({ "a": 1, "list": [1, { "x": "old" }, 3, 4], "gone": true });
        let after = json!({ "a": 1, "list": [0, 1, { "x": "new" }, 3], "more": null });
        let shown: Vec<String> = changes(&before, &after)
            .into_iter()
            .map(|one| format!("{} {:?} {:?}", one.path, one.before, one.after))
            .collect();
        assert_eq!(
            shown,
            [
                "list[0] None Some(Number(0))",
                "list[1].x Some(String(\"old\")) Some(String(\"new\"))",
                "list[3] Some(Number(4)) None",
                "gone Some(Bool(true)) None",
                "more None Some(Null)",
            ]
        );
        assert_eq!(changes(&before, &before), []);
        assert_eq!(changes(&json!(1), &json!("1")).len(), 1);
    }
}
