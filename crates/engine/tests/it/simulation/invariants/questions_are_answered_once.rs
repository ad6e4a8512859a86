//! A question takes one answer, and that one is what its node gets, every time it runs.

use std::collections::HashMap;

use serde_json::Value;

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    let mut accepted: HashMap<_, &Value> = HashMap::new();
    for one in record.answers.iter().filter(|one| one.is_accepted) {
        if accepted.insert(one.id, &one.answer).is_some() {
            return Err(format!("the question {} took two answers ({})", one.id, one.kind));
        }
    }
    for got in &record.delivered {
        let given = record
            .answers
            .iter()
            .any(|one| one.is_accepted && one.payload == got.payload && one.answer == got.answer);
        if !given {
            return Err(format!(
                "a node got {} for {}, which nobody answered",
                got.answer, got.payload
            ));
        }
    }
    Ok(())
}
