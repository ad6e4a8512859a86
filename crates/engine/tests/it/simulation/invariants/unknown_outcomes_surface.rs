//! An action found without an outcome is put to a person before the thread continues past it.

use perihelion_engine::checkpoint::{EffectKind, EffectStatus};
use serde_json::Value;

use super::Record;
use crate::simulation::record::End;

pub fn check(record: &Record) -> Result<(), String> {
    let open = record.effects.iter().find(|row| {
        row.kind == EffectKind::Tool
            && row.status == EffectStatus::Started
            && row.step <= record.head
    });
    if let Some(row) = open {
        return Err(format!("step {} is committed over an action without an outcome", row.step));
    }
    if record.end != End::Done || record.base > 0 {
        return Ok(());
    }
    let questions: Vec<Value> = record
        .effects
        .iter()
        .filter(|row| row.kind == EffectKind::Interrupt && row.name == "outcome_unknown")
        .filter_map(|row| row.request.decode().ok())
        .collect();
    for orphan in &record.orphans {
        let is_asked = questions.iter().any(|question| {
            question["idempotency_key"] == *orphan.key && question["attempt"] == orphan.attempt
        });
        if !is_asked {
            let key = &orphan.key;
            let attempt = orphan.attempt;
            return Err(format!("nobody was asked about attempt {attempt} at the action {key}"));
        }
    }
    Ok(())
}
