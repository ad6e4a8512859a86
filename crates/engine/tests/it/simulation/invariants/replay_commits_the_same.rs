//! A recorded thread, run again offline from its journal, commits the same bytes at every step.

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    match record.replay.as_ref().and_then(|replay| replay.divergence.as_ref()) {
        Some(divergence) => Err(format!("{divergence:?}")),
        None => Ok(()),
    }
}
