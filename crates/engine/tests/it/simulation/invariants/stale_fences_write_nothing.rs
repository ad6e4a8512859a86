//! A writer whose token is no longer the newest is told so, and changes nothing by any method.

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    match record.stale.iter().find(|one| one.changed || !one.is_fenced) {
        Some(one) => {
            Err(format!("{} under a stale token: {} {}", one.what, one.result, one.changed))
        }
        None => Ok(()),
    }
}
