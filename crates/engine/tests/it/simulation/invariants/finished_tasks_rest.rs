//! A task whose write was acknowledged is not run by any process that takes the thread afterwards.

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    for start in &record.starts {
        let again = record.kept.iter().find(|kept| {
            (kept.step, kept.task) == (start.step, start.task) && kept.at < start.claimed_at
        });
        if let Some(kept) = again {
            return Err(format!(
                "task {} of step {} had written and ran again",
                kept.task, kept.step
            ));
        }
    }
    Ok(())
}
