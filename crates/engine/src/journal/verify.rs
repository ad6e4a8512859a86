//! Checks that recorded effects stand under their own keys.
//!
//! A key is made of the thread, its making, the place and the request, so it is a checksum of all of them: a call
//! recorded under another key would not be found when its node runs again, and be made a second time.

use std::collections::HashMap;

use serde_json::Value;

use super::key::EffectKey;
use crate::checkpoint::{EffectKind, EffectRow, Error, ThreadDump, ThreadInfo};
use crate::graph::NodeLocation;
use crate::ids::RunId;

/// Checks the keys of a thread's recorded calls.
///
/// # Errors
/// [`Error::Corrupt`] naming the step and the call.
pub fn verify_keys(info: &ThreadInfo, rows: &[EffectRow]) -> Result<(), Error> {
    let mut of_task: HashMap<(u64, u32), u32> = HashMap::new();
    for row in rows {
        *of_task.entry((row.step, row.task)).or_default() += 1;
    }
    for row in rows {
        // Of two equal calls the first may never have been recorded.
        let recorded = of_task.get(&(row.step, row.task)).copied().unwrap_or(1);
        let most = recorded.max(row.number + 1);
        if !stands_under_its_key(info, row, most)? {
            let reason = format!(
                "its recorded call {} (task {}, call {}) does not stand under the key of its request",
                row.name, row.task, row.number
            );
            return Err(Error::Corrupt { thread: info.id, seq: row.step, reason });
        }
    }
    Ok(())
}

/// Checks the keys of all calls of a whole thread and its subgraphs' threads.
///
/// # Errors
/// As [`verify_keys`].
pub fn verify_dump(dump: &ThreadDump) -> Result<(), Error> {
    verify_keys(&dump.info, &dump.effects)?;
    dump.children.iter().try_for_each(verify_dump)
}

fn stands_under_its_key(info: &ThreadInfo, row: &EffectRow, most: u32) -> Result<bool, Error> {
    let (name, request) = match row.kind {
        EffectKind::Model | EffectKind::Tool => (row.name.clone(), row.request.decode()?),
        EffectKind::Clock | EffectKind::Random => (row.kind.as_str().to_owned(), Value::Null),
        EffectKind::Observed => (format!("observed {}", row.name), row.request.decode()?),
        // What tells one question from another is not in its row.
        EffectKind::Interrupt => return Ok(true),
    };
    // Reading a fraction may round it otherwise than it was when the key was made.
    if has_fraction(&request) {
        return Ok(true);
    }
    let place = NodeLocation {
        thread: info.id,
        run: RunId(uuid::Uuid::nil()),
        step: row.step,
        task: row.task,
        node: "".into(),
        attempt: 1,
        namespace: "".into(),
        tenant: "".into(),
    };
    let made_at = info.created_at.timestamp_micros();
    Ok((0..most).any(|number| {
        let key = EffectKey::derive(&place, made_at, &name, &request, number);
        let before = EffectKey::derive_v1(&place, &name, &request, number);
        row.key == key.as_bytes() || row.key == before.as_bytes()
    }))
}

fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(fields) => fields.values().any(has_fraction),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}
