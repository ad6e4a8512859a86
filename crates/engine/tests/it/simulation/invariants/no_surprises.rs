//! Every error a process ends with follows from a fault that was dealt to it.

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    match record.surprises.first() {
        Some(error) => Err(error.clone()),
        None => Ok(()),
    }
}
