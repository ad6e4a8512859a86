//! Checkpoint ids: a UUID that says which step of which thread it is, and sorts as steps do.

use serde_json::{Value, json};
use uuid::Uuid;

use perihelion_engine::ids::ThreadId;

/// Bits of a step's number in an id.
const BITS: u32 = 48;

/// Returns the id of a step.
pub(crate) fn checkpoint_id(thread: ThreadId, step: u64) -> String {
    let tail = Uuid::new_v5(&thread.0, b"checkpoint").as_u128() & ((1 << 76) - 1);
    let bits = (u128::from(step) << (128 - BITS)) | tail;
    let version = (bits & !(0xf << 76)) | (0x8 << 76);
    let variant = (version & !(0x3 << 62)) | (0x2 << 62);
    Uuid::from_u128(variant).to_string()
}

/// Returns the step of an id; `None` when it is none of this thread's.
pub(crate) fn step_of(thread: ThreadId, id: &str) -> Option<u64> {
    let found = Uuid::parse_str(id).ok()?;
    let step = u64::try_from(found.as_u128() >> (128 - BITS)).ok()?;
    (checkpoint_id(thread, step) == found.to_string()).then_some(step)
}

/// Finds the id of a checkpoint in the forms in which clients name one: its id, a checkpoint, or a configuration.
pub(crate) fn named_step(given: &Value) -> Option<&str> {
    let given = given.get("configurable").unwrap_or(given);
    given.as_str().or_else(|| given.get("checkpoint_id").and_then(Value::as_str))
}

/// Shows a checkpoint.
pub(super) fn shown(thread: ThreadId, step: u64) -> Value {
    json!({ "checkpoint_id": checkpoint_id(thread, step), "thread_id": thread, "checkpoint_ns": "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_its_step_and_thread_and_sorts_as_steps_do() {
        let one = ThreadId::new();
        let other = ThreadId::new();
        let ids: Vec<String> = [1, 2, 255, 65_536].map(|step| checkpoint_id(one, step)).into();
        assert!(ids.is_sorted(), "{ids:?}");
        assert_eq!(step_of(one, &ids[2]), Some(255));
        assert_eq!(step_of(other, &ids[2]), None, "another thread's");
        assert_eq!(step_of(one, "x"), None);
    }

    #[test]
    fn a_checkpoint_is_named_in_any_of_the_forms_that_clients_use() {
        for given in [
            json!("a"),
            json!({ "checkpoint_id": "a", "thread_id": "t" }),
            json!({ "configurable": { "checkpoint_id": "a" } }),
        ] {
            assert_eq!(named_step(&given), Some("a"), "{given}");
        }
    }
}
