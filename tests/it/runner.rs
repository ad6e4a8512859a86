//! The graphs of the engine's tests.

#[path = "../../crates/engine/tests/it/runner/damage.rs"]
pub mod damage;
#[path = "../../crates/engine/tests/it/runner/world.rs"]
#[expect(dead_code, reason = "shared with the engine's tests, which use more of it")]
pub mod world;
