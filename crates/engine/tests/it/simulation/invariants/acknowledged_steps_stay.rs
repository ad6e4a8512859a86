//! A step that its writer was told is committed is there for every later reader, and for ever.

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    if let Some((head, acked)) = record.rewinds.first() {
        return Err(format!("step {acked} was acknowledged, and then the head was read as {head}"));
    }
    for ack in record.acks.iter().filter(|ack| ack.seq > record.base) {
        let kept = record.steps.iter().find(|step| step.seq == ack.seq);
        match kept {
            Some(step) if step.hash == ack.hash => {}
            Some(_) => {
                return Err(format!("step {} is another one than was acknowledged", ack.seq));
            }
            None => return Err(format!("step {} was acknowledged and is gone", ack.seq)),
        }
    }
    match record.acknowledged.iter().find(|acknowledged| **acknowledged > record.head) {
        Some(acknowledged) => {
            Err(format!("a caller was told of step {acknowledged}, the head is {}", record.head))
        }
        None => Ok(()),
    }
}
