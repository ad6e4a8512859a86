//! A state restored from a snapshot is the state that its steps alone come to.

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    match record.states.iter().find(|(_, restored, folded)| restored != folded) {
        Some((seq, restored, folded)) => {
            Err(format!("at step {seq} the store says {restored}, the steps say {folded}"))
        }
        None => Ok(()),
    }
}
