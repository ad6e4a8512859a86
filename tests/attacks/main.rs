//! What attacks, damage and degraded parts lead to: never a silent loss, always a word of what happened.

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
