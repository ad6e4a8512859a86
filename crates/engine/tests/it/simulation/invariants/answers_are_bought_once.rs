//! A model whose answer is on record is not asked the same again in that place by one who could know it.
//!
//! One who was overtaken and does not know it yet may ask what its successor has the answer to; what it is told is not kept.

use super::Record;
use crate::simulation::record::{AskedOfModel, OfModel};

pub fn check(record: &Record) -> Result<(), String> {
    for asked in &record.asked_of_models {
        if record.answered_by_models.iter().any(|answered| is_known(answered, asked)) {
            let OfModel { step, task, key, .. } = &asked.about;
            return Err(format!(
                "task {task} of step {step} had the answer to {key} on record and asked again"
            ));
        }
    }
    Ok(())
}

fn is_known(answered: &OfModel, AskedOfModel { claimed_at, about }: &AskedOfModel) -> bool {
    let place = |one: &OfModel| (one.thread, one.step, one.task, one.key.clone());
    let was_first =
        answered.at < *claimed_at || (answered.process == about.process && answered.at < about.at);
    was_first && place(answered) == place(about)
}
