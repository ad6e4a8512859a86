//! The engine as programs use it, on every store; all in one binary.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

mod bus;
mod golden;
mod runner;
mod simulation;
#[path = "simulation/cases.rs"]
mod simulation_cases;
mod store_model;
mod store_suite;
