//! Whatever breaks and no matter who overtakes whom, the committed bytes are those of a run without any fault.
//!
//! The outside answers by what it is asked, and the person looks before deciding; else there is no telling.

use super::Record;
use crate::simulation::record::{End, Reference};

pub fn check(record: &Record) -> Result<(), String> {
    let Some(reference) = &record.reference else { return Ok(()) };
    if matches!(record.end, End::Stuck(_)) {
        return Ok(());
    }
    let hash = record.steps.last().map(|step| step.hash);
    let own = Reference { head: record.head, hash, end: record.end.clone() };
    if own == *reference {
        Ok(())
    } else {
        Err(format!(
            "{:?} at step {}, but without faults {:?} at step {}; the hashes are {}",
            own.end,
            own.head,
            reference.end,
            reference.head,
            if own.hash == reference.hash { "equal" } else { "different" },
        ))
    }
}
