//! Threads in memory.

use std::sync::Arc;

use super::Threads;
use perihelion_engine::checkpoint::{MemoryStore, NewThread, Threads as _};
use perihelion_engine::ids::ThreadId;

/// Makes a store with these threads.
pub(super) async fn with(ids: &[ThreadId]) -> Threads {
    let store = MemoryStore::new();
    for id in ids {
        let new = NewThread {
            id: *id,
            graph: "g".into(),
            title: None,
            root: None,
            namespace: String::new(),
            tenant: "default".into(),
        };
        store.create(new).await.unwrap();
    }
    Threads::of(Arc::new(store))
}
