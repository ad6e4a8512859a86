//! A fork has its source's steps up to the fork, whatever becomes of the source, and continues as the source did.

use super::Record;
use crate::simulation::record::End;

pub fn check(record: &Record) -> Result<(), String> {
    let Some(fork) = &record.fork else { return Ok(()) };
    if fork.before != fork.source {
        return Err(format!("a fork at step {} has other steps than its source", fork.at));
    }
    if fork.after != fork.source {
        return Err(format!("a fork at step {} changed when its source was deleted", fork.at));
    }
    let Some(end) = fork.end.as_ref().filter(|_| fork.is_same_story) else { return Ok(()) };
    let hash = record.steps.last().map(|step| step.hash);
    if record.end == End::Done && (end.head, end.hash) != (record.head, hash) {
        return Err(format!(
            "a fork at step {} came to {:?} at step {}, its source ended at step {}",
            fork.at, end.end, end.head, record.head
        ));
    }
    Ok(())
}
