//! A runtime for long-running, supervised agent graphs.
//!
//! Imports run one way: `ids ← graph ← checkpoint ← journal ← runner`; `llm` and `mcp` stand beside
//! the graph and know nothing of it; `swarm` joins them; `telemetry` reads what
//! they left; `runtime` assembles; `cli` and `api` are edges.
//! `ARCHITECTURE.md` is the map.

extern crate self as perihelion;

pub mod api;
pub mod bus;
pub mod checkpoint;
pub mod cli;
pub mod clock;
pub mod config;
pub mod dispatch;
pub mod failpoint;
pub mod graph;
pub mod history;
pub mod ids;
pub mod journal;
pub mod llm;
pub mod mcp;
pub mod metrics;
pub mod runner;
pub mod runtime;
pub mod servers;
pub mod swarm;
pub mod telemetry;
pub mod worker;

/// What the macros of this crate expand to; not an interface.
#[doc(hidden)]
pub mod __private {
    pub use serde;
    pub use serde_json::Value;

    /// Reads a field that is there, so that `null` is a value and not an absence.
    pub fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        D: serde::Deserializer<'de>,
        T: serde::Deserialize<'de>,
    {
        T::deserialize(deserializer).map(Some)
    }
}

/// Keeps the code in the README true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
