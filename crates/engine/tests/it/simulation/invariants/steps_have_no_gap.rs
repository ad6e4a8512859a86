//! A thread's steps are numbered from 1 (or from behind what was dropped) to its head: no gap, no duplicate.

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    let numbers: Vec<u64> = record.steps.iter().map(|step| step.seq).collect();
    let wanted: Vec<u64> = (record.base + 1..=record.head).collect();
    if numbers == wanted {
        Ok(())
    } else {
        Err(format!("the steps are {numbers:?}, the head is {}", record.head))
    }
}
