//! The key of an effect: where it happens and what is asked.

use serde_json::Value;

use crate::graph::Place;

/// Names one effect for ever: BLAKE3 over thread, step, task, name, request and occurrence.
///
/// Position within the task is not part of it, so that a node whose prompts changed between two
/// versions of the program still finds the calls it already made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EffectKey([u8; 32]);

impl EffectKey {
    /// Derives the key; `occurrence` counts equal requests within one task from 0.
    pub fn derive(place: &Place, name: &str, request: &Value, occurrence: u32) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("perihelion effect key v1");
        hasher.update(place.thread.0.as_bytes());
        hasher.update(&place.step.to_le_bytes());
        hasher.update(&place.task.to_le_bytes());
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(request.to_string().as_bytes());
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
