//! An action that may not be repeated is sent once, and once more for each time a person said so.

use std::collections::HashMap;

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    let mut sent: HashMap<&str, u32> = HashMap::new();
    for one in record.sent.iter().filter(|one| !one.repeatable) {
        *sent.entry(&one.key).or_default() += 1;
    }
    for (key, times) in sent {
        let words = record.answers.iter().filter(|one| {
            one.is_accepted
                && one.payload["idempotency_key"] == key
                && one.answer["outcome"] == "retry"
        });
        let allowed = 1 + words.count() as u32;
        if times > allowed {
            return Err(format!("the action {key} was sent {times} times, {allowed} were allowed"));
        }
    }
    Ok(())
}
