//! What attacks, damage and degraded parts lead to: never a silent loss, always a word of what happened.
#![expect(clippy::panic, reason = "a test ends at what it did not expect")]
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "../it/support/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "shared with the other test binary, which uses all of it"
)]
mod support;
#[path = "../it/cli/world.rs"]
#[expect(dead_code, reason = "shared with the other test binary, which uses all of it")]
mod world;

mod damage;
mod endings;
mod everywhere;
