//! Agents that are pipelines: killed between two stages, asked during one, judged, replayed; on both databases.
//!
//! The pipeline is `examples/librarian.rs`, run as a program of its own, so that a kill is a kill.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

#[path = "../../examples/librarian.rs"]
#[expect(dead_code, reason = "an example is a program of its own")]
mod librarian;

mod crashes;
mod kinds;
mod library;
mod questions;
mod results;

use perihelion_test_database::postgres;
