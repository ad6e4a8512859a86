//! A state stood up from a snapshot is the state that its steps alone come to.

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    match record.states.iter().find(|(_, stood_up, folded)| stood_up != folded) {
        Some((seq, stood_up, folded)) => {
            Err(format!("at step {seq} the store says {stood_up}, the steps say {folded}"))
        }
        None => Ok(()),
    }
}
