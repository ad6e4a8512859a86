//! What a run is to be: how much, on what, from which seed.

use clap::{Parser, ValueEnum};

/// Where the threads are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Postgres,
    Sqlite,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }
}

/// Kills, stops and cuts off real processes, and checks what they leave behind.
#[derive(Clone, Debug, Parser)]
#[command(name = "torture")]
pub struct Options {
    #[arg(long, value_enum, default_value = "postgres")]
    pub database: Kind,
    /// Determines jobs, answers, and what is planned for each process; drawn and printed where absent.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Processes to be killed.
    #[arg(long, default_value_t = 1000)]
    pub kills: u64,
    /// Processes to be stopped for longer than their lease, and revived.
    #[arg(long, default_value_t = 50)]
    pub zombies: u64,
    /// Immediate stops of the database server.
    #[arg(long, default_value_t = 10)]
    pub crashes: u64,
    /// Times that the database's disk is filled; needs the right to mount a file system.
    #[arg(long, default_value_t = 0)]
    pub fills: u64,
    /// Size of that disk, in MiB.
    #[arg(long, default_value_t = 4096)]
    pub disk_mib: u64,
    /// Of this many replies of the server one is lost with its connection; of those to a commit, ten.
    #[arg(long, default_value_t = 300)]
    pub cut_one_of: u64,
    /// Processes at a time.
    #[arg(long)]
    pub hands: Option<u64>,
    /// Milliseconds that a lease lasts.
    #[arg(long, default_value_t = 1000)]
    pub lease_ms: u64,
    /// How often every failpoint must have been reached.
    #[arg(long, default_value_t = 100)]
    pub least: u64,
    /// Seconds after which the storm ends, whether or not all of this was reached.
    #[arg(long, default_value_t = 7200)]
    pub seconds: u64,
    /// Settings of the Postgres server.
    #[arg(
        long,
        default_value = "-c shared_buffers=256MB -c recovery_init_sync_method=syncfs",
        allow_hyphen_values = true
    )]
    pub postgres_settings: String,
}

impl Options {
    pub fn hands(&self) -> u64 {
        self.hands.unwrap_or(match self.database {
            Kind::Postgres => 4,
            Kind::Sqlite => 1,
        })
    }

    /// Of 1,000 processes so many are to be stopped.
    pub fn zombies_per_mille(&self) -> u64 {
        // A stopped process is killed in the end, so it is one of the kills; some are stopped in vain.
        (self.zombies * 1300 / self.kills.max(1)).clamp(u64::from(self.zombies > 0), 500)
    }
}
