//! The stores of the engine's tests.

#[path = "../../crates/engine/tests/it/store_suite/each.rs"]
#[expect(
    unused_imports,
    unused_macros,
    reason = "shared with the engine's tests, which use more of it"
)]
mod each;
#[path = "../../crates/engine/tests/it/store_suite/stores.rs"]
#[expect(dead_code, reason = "shared with the engine's tests, which use more of it")]
pub mod stores;
#[path = "../../crates/engine/tests/it/store_suite/writer.rs"]
#[expect(dead_code, reason = "shared with the engine's tests, which use more of it")]
pub mod writer;

pub(crate) use each::{on_durable_stores, on_every_store, on_store};
