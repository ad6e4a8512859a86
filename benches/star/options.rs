//! What the benchmark is asked to do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Parser, ValueEnum};
use perihelion::bus::{self, Bus};
use perihelion::checkpoint::Store;
use perihelion::runner::Durability;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Runs the workload and prints its figures.
    Star,
    /// Compares a step with a bare insert of the same bytes.
    Floor,
    /// Compares many threads' steps with as many connections that only insert.
    #[value(name = "crowd")]
    Writers,
    /// Measures how long threads of a lost machine wait for another one.
    Takeover,
    /// Restores a stored thread in fresh processes (after `star --stop-after R --keep`).
    Resume,
    /// Runs all cases, each in a process of its own, and writes their lines to a file.
    Matrix,
    /// Prints the tables of such a file.
    Table,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    Memory,
    Sqlite,
    Postgres,
}

impl Backend {
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    Sync,
    Async,
    Exit,
}

impl When {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
            Self::Exit => "exit",
        }
    }

    pub fn durability(self) -> Durability {
        match self {
            Self::Sync => Durability::Sync,
            Self::Async => Durability::Async,
            Self::Exit => Durability::Exit,
        }
    }
}

/// Whether runs tell their events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Publish {
    On,
    Off,
}

/// Measures the star workload; every figure is one JSON line on standard output.
#[derive(Clone, Debug, Parser)]
#[command(name = "star")]
pub struct Options {
    /// What to measure: star, floor, crowd, takeover, resume, matrix or table (cargo adds an empty one of its own).
    #[arg(long, num_args = 0..=1, default_missing_value = "")]
    bench: Vec<String>,
    #[arg(long, value_enum, default_value = "memory")]
    pub backend: Backend,
    /// Rounds of supervisor and agent; a run has 2 N + 3 super-steps.
    #[arg(long, default_value_t = 1000)]
    pub rounds: usize,
    /// Graph threads that run at the same time.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    #[arg(long, value_enum, default_value = "sync")]
    pub durability: When,
    /// Agents that take turns.
    #[arg(long, default_value_t = 1)]
    pub agents: usize,
    /// Distinct keys of the dictionary; 0 for a new one each round.
    #[arg(long, default_value_t = 64)]
    pub gs_keys: usize,
    /// A Postgres server; the benchmark makes a database of its own beside the one named.
    #[arg(long, env = "TEST_DATABASE_URL", hide_env_values = true)]
    pub dsn: Option<String>,
    /// The SQLite file (default: a temporary one).
    #[arg(long)]
    pub sqlite: Option<PathBuf>,
    /// Leaves the threads after this many rounds, before the agent, for `resume`.
    #[arg(long)]
    pub stop_after: Option<usize>,
    /// Keeps the stored data.
    #[arg(long)]
    pub keep: bool,
    /// Rounds of a throw-away thread that runs before the clock starts; 0 for none.
    #[arg(long, default_value_t = 3)]
    pub warmup: usize,
    /// Runs of each case, turns of `crowd`, or fresh processes of `resume`.
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// The thread that `resume` continues with.
    #[arg(long, default_value = "t0")]
    pub thread: String,
    /// Rounds in one block of `floor`, two steps and two inserts each.
    #[arg(long, default_value_t = 10)]
    pub block: usize,
    /// The file of `matrix` and `table`.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Only cases whose name contains this.
    #[arg(long)]
    pub only: Option<String>,
    /// A Python with LangGraph, to run the peer's cases beside ours.
    #[arg(long)]
    pub peer: Option<PathBuf>,
    /// Whether runs tell their events on the bus, as those of the program do.
    #[arg(long, value_enum, default_value = "on")]
    pub publish: Publish,
    #[arg(skip)]
    pub bus: Option<Arc<dyn Bus>>,
    #[arg(long, hide = true)]
    pub child: bool,
}

impl Options {
    pub fn mode(&self) -> anyhow::Result<Mode> {
        let mut asked = self.bench.iter().filter(|mode| !mode.is_empty());
        let Some(mode) = asked.next() else { return Ok(Mode::Star) };
        if let Some(second) = asked.next() {
            bail!("two modes are given: {mode} and {second}");
        }
        Mode::from_str(mode, true).map_err(anyhow::Error::msg)
    }

    /// Returns whether runs tell their events on the bus.
    pub fn publishes(&self) -> bool {
        self.publish == Publish::On
    }

    /// The same options with the bus that `--publish` asks for.
    pub fn publishing(&self, address: &str, store: &Arc<dyn Store>) -> Self {
        let kept = Duration::from_secs(86_400);
        let bus = self.publishes().then(|| bus::open(address, Arc::clone(store), kept));
        Self { bus, ..self.clone() }
    }

    pub fn file(&self) -> anyhow::Result<&Path> {
        self.out.as_deref().context("name the file of JSON lines: --out FILE")
    }

    pub fn server(&self) -> anyhow::Result<&str> {
        self.dsn.as_deref().context("name a Postgres server: --dsn URL, or TEST_DATABASE_URL")
    }
}
