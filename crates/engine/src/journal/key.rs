//! The key of an effect: where it happens and what is asked.

use serde_json::Value;

use crate::graph::NodeLocation;

/// Names one effect for ever: BLAKE3 over thread, its making, step, task, name, request and occurrence.
///
/// When the thread was made is part of it, because its id alone is not: a name stands for the same id in every
/// database, and again after the thread was deleted, and receivers remember keys for longer than that.
/// Position within the task is not part of it, so that a node whose prompts changed between two
/// versions of the program still finds the calls it already made; nor is the order of an object's
/// fields, which a hash map draws again in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EffectKey([u8; 32]);

impl EffectKey {
    /// Derives the key; `made_at` is the time at which the thread was made, in microseconds since the Unix epoch, and
    /// `occurrence` counts equal requests within one task from 0.
    pub fn derive(
        place: &NodeLocation,
        made_at: i64,
        name: &str,
        request: &Value,
        occurrence: u32,
    ) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("perihelion effect key v2");
        hasher.update(&made_at.to_le_bytes());
        Self::finish(hasher, place, name, request, occurrence)
    }

    /// Derives the key under which earlier versions recorded the effect.
    pub(super) fn derive_v1(
        place: &NodeLocation,
        name: &str,
        request: &Value,
        occurrence: u32,
    ) -> Self {
        let hasher = blake3::Hasher::new_derive_key("perihelion effect key v1");
        Self::finish(hasher, place, name, request, occurrence)
    }

    fn finish(
        mut hasher: blake3::Hasher,
        place: &NodeLocation,
        name: &str,
        request: &Value,
        occurrence: u32,
    ) -> Self {
        hasher.update(place.thread.0.as_bytes());
        hasher.update(&place.step.to_le_bytes());
        hasher.update(&place.task.to_le_bytes());
        text(&mut hasher, name);
        value(&mut hasher, request);
        hasher.update(&occurrence.to_le_bytes());
        Self(*hasher.finalize().as_bytes())
    }

    /// Returns the bytes under which the effect is stored.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Display for EffectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn text(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

/// Hashes JSON without the order of its objects' fields.
fn value(hasher: &mut blake3::Hasher, json: &Value) {
    match json {
        Value::Array(items) => {
            hasher.update(b"[");
            hasher.update(&(items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| value(hasher, item));
        }
        Value::Object(fields) => {
            hasher.update(b"{");
            hasher.update(&(fields.len() as u64).to_le_bytes());
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            for name in names {
                text(hasher, name);
                value(hasher, &fields[name]);
            }
        }
        Value::String(string) => {
            hasher.update(b"\"");
            text(hasher, string);
        }
        plain => {
            hasher.update(b"=");
            text(hasher, &plain.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::ids::{RunId, ThreadId};

    #[test]
    fn the_key_depends_on_what_is_asked_and_where_but_not_on_field_order_or_attempt() {
        let place = NodeLocation {
            thread: ThreadId::new(),
            run: RunId::new(),
            step: 3,
            task: 0,
            node: Arc::from("a"),
            attempt: 1,
            namespace: Arc::from(""),
            tenant: Arc::from(""),
        };
        let key = |request| EffectKey::derive(&place, 7, "files.read", &request, 0);
        let plain = key(json!({ "path": "a", "deep": { "x": 1, "y": [1, 2] } }));
        assert_eq!(plain, key(json!({ "deep": { "y": [1, 2], "x": 1 }, "path": "a" })));
        assert_ne!(plain, key(json!({ "path": "a", "deep": { "x": 1, "y": [2, 1] } })));
        assert_ne!(key(json!(["ab", "c"])), key(json!(["a", "bc"])));
        assert_ne!(key(json!("1")), key(json!(1)));
        let other = |place: &NodeLocation| EffectKey::derive(place, 7, "files.read", &json!(1), 0);
        let later = NodeLocation { attempt: 2, run: RunId::new(), ..place.clone() };
        assert_eq!(other(&place), other(&later), "a retry finds the effects of the attempt before");
        let again = EffectKey::derive(&place, 8, "files.read", &json!(1), 0);
        assert_ne!(other(&place), again, "a thread made again under its name calls again");
        assert_ne!(other(&place), other(&NodeLocation { step: 4, ..place.clone() }));
        assert_ne!(other(&place), other(&NodeLocation { task: 1, ..place.clone() }));
    }
}
