//! A random draw that a node was given is given to it again, no matter who runs it.

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    match record.draws.iter().find(|(_, drawn)| drawn.iter().any(|one| *one != drawn[0])) {
        Some(((step, task, _), drawn)) => {
            Err(format!("task {task} of step {step} drew {drawn:?} at one place"))
        }
        None => Ok(()),
    }
}
