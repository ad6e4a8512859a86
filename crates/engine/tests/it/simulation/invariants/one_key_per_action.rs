//! An action carries the same key no matter who sends it and however often: a receiver that checks keys acts once.

use std::collections::{HashMap, HashSet};

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    let mut keys: HashMap<_, HashSet<&str>> = HashMap::new();
    let mut places: HashMap<&str, HashSet<&str>> = HashMap::new();
    for one in &record.sent {
        // The node and the number of the act within it; the rest of the request is the same for ever.
        let act = one.what.split('.').take(2).collect::<Vec<_>>().join(".");
        let both = one.what.contains(".both.");
        let place = (one.thread, one.step, one.task, act, both);
        keys.entry(place).or_default().insert(&one.key);
        places.entry(&one.key).or_default().insert(&one.what);
    }
    for ((_, step, task, act, both), keys) in keys {
        let allowed = if both { 2 } else { 1 };
        if keys.len() > allowed {
            return Err(format!(
                "{act} in task {task} of step {step} went under {} keys",
                keys.len()
            ));
        }
    }
    match places.into_iter().find(|(_, whats)| whats.len() > 1) {
        Some((key, whats)) => Err(format!("the key {key} names different actions: {whats:?}")),
        None => Ok(()),
    }
}
