//! Runs a model's Python in a sandbox: `perihelion mcp python`.
//!
//! Enter at [`Server::open`]. Invariant: a program reaches its inputs and a scratch folder of its own, and a failed program is a
//! result with an `error`, not a failed call. Deliberately absent: state between two runs; each starts from nothing.

mod check;
mod tools;

use std::time::Duration;

use perihelion_sandbox::{Limits, Python, Tier};

pub use check::check;
pub use tools::Server;

/// What `perihelion mcp python` is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Which Python: the bundled one (standard library), or the system's with its packages under bubblewrap.
    #[arg(long, value_enum)]
    pub tier: Option<TierName>,
    /// Longest run, in seconds; a call may ask for less.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub timeout_sec: u32,
    /// Most memory of a run, in megabytes.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(64..=4_096))]
    pub memory_mb: u32,
    /// Most kilobytes kept of what is printed.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub output_kb: u32,
    /// Most rows of a table.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_rows: u32,
    /// Every run starts at this moment (RFC 3339) instead of the present one.
    #[arg(long, value_name = "TIME", value_parser = chrono::DateTime::parse_from_rfc3339)]
    pub clock: Option<chrono::DateTime<chrono::FixedOffset>>,
    /// What randomness follows from, beside the program itself.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// Name of a tier on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TierName {
    Wasm,
    System,
}

impl Options {
    fn tier(&self) -> Tier {
        match self.tier {
            Some(TierName::Wasm) => Tier::Wasm,
            Some(TierName::System) => Tier::System,
            None => Python::default_tier(),
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            time: Duration::from_secs(self.timeout_sec.into()),
            memory_bytes: (self.memory_mb as usize) << 20,
            output_bytes: (self.output_kb as usize) << 10,
            rows: self.max_rows as usize,
            ..Limits::default()
        }
    }
}

/// Why Python could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Sandbox(#[from] perihelion_sandbox::Error),
    #[error("the run was aborted: {0}")]
    Aborted(#[from] tokio::task::JoinError),
    #[error("the timeout must be between 0 and {most} seconds, not: {asked}")]
    Timeout { most: u32, asked: f64 },
    #[error("the program is too long; at most {MAX_CODE_BYTES} bytes are run, this has: {0}")]
    TooLong(usize),
}

/// Longest program, in bytes.
const MAX_CODE_BYTES: usize = 1 << 20;
