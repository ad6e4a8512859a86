//! Real backends read what the program sends: Phoenix and MLflow, installed from PyPI.
//!
//! Enter at the tests below: each starts a [`server`] in a virtual environment ([`python`]), lets the
//! program run ([`story`]) and compares what the backend gives back over its own API with what
//! `perihelion trace` prints ([`spans`]). A target of its own, because it downloads several hundred
//! megabytes: `make test-backends`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test: a panic fails it, and it says what it installs and finds"
)]

mod mlflow;
mod phoenix;
mod python;
mod server;
mod spans;
mod story;
#[expect(dead_code, reason = "shared with the tests of the command line, which use more of it")]
#[path = "../it/cli/world.rs"]
mod world;

/// X7
#[tokio::test]
async fn phoenix_shows_every_trace_as_the_program_does() {
    story::tell(&phoenix::Phoenix::start().await).await;
}

/// X7
#[tokio::test]
async fn mlflow_shows_every_trace_as_the_program_does() {
    story::tell(&mlflow::Mlflow::start().await).await;
}
