//! Runs a model's Python in a sandbox: `perihelion mcp python`.
//!
//! Enter at [`Server::open`]. Invariant: a program reaches only its inputs and its own scratch folder, and a failed
//! program is a result with an `error`, not a failed call. Deliberately absent: state between two runs; each starts
//! empty.

mod tools;

use std::path::PathBuf;
use std::time::Duration;

use perihelion_sandbox::{Limits, Python, Tier};

pub use tools::Server;

/// Options of `perihelion mcp python`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Python to use: the bundled Python (standard library only), or the system Python under bubblewrap.
    #[arg(long, value_enum)]
    pub tier: Option<TierName>,
    /// Directory of packages for the system Python, such as numpy or pandas. Mounted read-only. Repeatable.
    #[arg(long, value_name = "DIR")]
    pub site_packages: Vec<PathBuf>,
    /// Maximum duration of a run in seconds. Calls can set a lower limit.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub timeout_sec: u32,
    /// Maximum memory of a run in megabytes.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(64..=4_096))]
    pub memory_mb: u32,
    /// Maximum size of the output in kilobytes.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub output_kb: u32,
    /// Maximum number of rows in a table.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_rows: u32,
    /// Fixed start time of every run (RFC 3339). Defaults to the present time.
    #[arg(long, value_name = "TIME", value_parser = chrono::DateTime::parse_from_rfc3339)]
    pub clock: Option<chrono::DateTime<chrono::FixedOffset>>,
    /// Seed of random numbers, combined with the program.
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
    pub(crate) fn tier(&self) -> Tier {
        match self.tier {
            Some(TierName::Wasm) => Tier::Wasm,
            Some(TierName::System) => Tier::System,
            // The bundled Python loads no native code, and packages are full of it.
            None if !self.site_packages.is_empty() => Tier::System,
            None => Python::default_tier(),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
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

const MAX_CODE_BYTES: usize = 1 << 20;
