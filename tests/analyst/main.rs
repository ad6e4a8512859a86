//! The analyst as its users meet it: the real program, the bundled SQL server, a scripted model over HTTP, both stores.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "shared with the other tests, which use more of it")]
mod support;

mod answers;
mod crashes;
mod errors;
mod knowledge;
mod script;
mod world;
