//! Encrypts what threads hold before any store sees it.
//!
//! Enter at [`SealedStore`], a store over any other. Invariants: texts of people, models and tools, and data derived
//! from them, leave this module as ciphertext only. Each value is bound to its place in its thread, so a value that was
//! altered, moved or replaced by plain text is rejected. These stay readable: IDs, times, sizes, counts, the kind and
//! status of rows, names of roles and tools, graph, tenant, namespace, lease holder. Deliberately absent: compression,
//! which happens before, and re-encryption: a value stays under its key.

mod keyring;
mod label;
mod seal;
mod traits;
mod values;
mod whole;

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

pub use self::keyring::Keyring;
use self::label::open_info;
pub(super) use self::label::shown;
pub(super) use self::seal::key_name;
pub(super) use self::traits::check;
use self::values::Values;
use super::{
    Begun, Claim, EffectSettlement, EffectStatus, Effects as _, Outbox, Result, StateCache, Store,
};
use crate::clock::Clock;
use crate::ids::{InterruptId, ThreadId};

/// A store whose contents are encrypted; threads from before the first key was set open as they are.
pub struct SealedStore {
    inner: Arc<dyn Store>,
    keys: Keyring,
    states: StateCache,
}

impl SealedStore {
    /// Puts encryption in front of a store.
    pub fn new(inner: Arc<dyn Store>, keys: Keyring) -> Self {
        Self { inner, keys, states: StateCache::default() }
    }

    /// Returns the possible names of a row in the database, the most likely first.
    fn stored_keys(&self, key: &[u8]) -> impl Iterator<Item = Vec<u8>> + use<> {
        let blinded: Vec<_> = self.keys.keys().iter().map(|one| one.blind(key)).collect();
        blinded.into_iter().chain([key.to_vec()])
    }

    /// Returns the possible IDs of a question in the database, the most likely first.
    fn stored_interrupts(
        &self,
        interrupt: InterruptId,
    ) -> impl Iterator<Item = InterruptId> + use<> {
        let keys = self.stored_keys(interrupt.0.as_bytes());
        keys.map(move |key| Uuid::from_slice(&key).map_or(interrupt, InterruptId))
    }

    fn of(&self, thread: ThreadId) -> Values<'_> {
        Values { keys: &self.keys, thread }
    }

    /// Returns whether an effect has ended with this outcome; ciphertexts cannot be compared, because each one is
    /// different.
    async fn is_settled(&self, thread: ThreadId, end: &EffectSettlement) -> Result<bool> {
        let effects = self.effects(thread, Some(end.step)).await?;
        let found = effects.iter().find(|row| row.task == end.task && row.key == end.key);
        Ok(found.is_some_and(|row| {
            row.status == EffectStatus::Done
                && row.status == end.status
                && row.outcome == end.outcome
        }))
    }
}

#[async_trait]
impl Store for SealedStore {
    async fn check_keys(&self) -> Result<()> {
        check(self.inner.as_ref(), Some(&self.keys)).await
    }

    async fn claim_and_begin(&self, claim: Claim<'_>, exports: bool) -> Result<Begun> {
        let begun = self.inner.claim_and_begin(claim, exports).await?;
        Ok(Begun { info: open_info(&self.keys, begun.info), ..begun })
    }

    fn outbox(&self) -> Option<&dyn Outbox> {
        self.inner.outbox()
    }

    async fn now(&self) -> Result<DateTime<Utc>> {
        self.inner.now().await
    }

    fn clock(&self, given: DateTime<Utc>) -> Clock {
        self.inner.clock(given)
    }

    fn describe(&self) -> String {
        let key = &self.keys.first().name;
        format!("{}, encrypted with the key {key}", self.inner.describe())
    }

    fn compress_above(&self) -> usize {
        self.inner.compress_above()
    }

    fn snapshot_above(&self) -> usize {
        self.inner.snapshot_above()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::state_cache::KnownState;
    use super::super::{MemoryStore, NewThread, Threads as _};
    use super::*;
    use crate::graph::Frontier;
    use crate::ids::ThreadId;

    /// S3.05
    #[tokio::test]
    async fn a_deleted_thread_leaves_no_decrypted_state_in_memory() {
        let keys = Keyring::new([("one".to_owned(), [1; 32])]).unwrap();
        let store = SealedStore::new(Arc::new(MemoryStore::new()), keys);
        for as_seen in [false, true] {
            let new = NewThread {
                id: ThreadId::new(),
                graph: "story".to_owned(),
                title: None,
                root: None,
                namespace: String::new(),
                tenant: "default".to_owned(),
            };
            let info = store.create(new).await.unwrap();
            let known = KnownState {
                state: Arc::new("what a person wrote"),
                seq: 1,
                frontier: Frontier::default(),
                hash: [1; 32],
                snapshot_size: 1,
                since_snapshot: 0,
            };
            store.states.keep(info.id, known);
            assert!(store.states.find(info.id, None).is_some());
            if as_seen {
                store.delete_as_seen(&info).await.unwrap();
            } else {
                store.delete(info.id).await.unwrap();
            }
            assert!(store.states.find(info.id, None).is_none());
        }
    }
}
