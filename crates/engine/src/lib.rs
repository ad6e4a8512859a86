//! Durable graphs: typed state, a checkpoint after every step, effects that happen once.
//!
//! Enter at [`graph::GraphBuilder`] to declare a graph, at [`checkpoint::open`] for a store and at [`runner::Runner`]
//! to drive threads. Invariant: a thread is what its store has committed; if any process dies, another one can resume
//! it. Deliberately absent: models, MCP, HTTP and telemetry, which the `perihelion` crate adds.
//!
//! Imports run one way: `ids ← graph ← checkpoint ← journal, bus ← runner`.

#![deny(missing_docs)]

// The macros name this crate by its name.
#[cfg(test)]
extern crate self as perihelion_engine;

pub mod bus;
pub mod checkpoint;
pub mod failpoint;
pub mod graph;
pub mod ids;
pub mod journal;
pub mod observer;
pub mod runner;

pub use perihelion_clock as clock;

/// Support for the macros of this crate; not an interface.
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

/// Compiles and runs the code of the tutorial.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorials/your-own-graph.md")]
struct Tutorial;

/// Compiles and runs the code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/graphs.md")]
struct Guide;

/// Compiles and runs the code of the guide to streams.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/graph-streams.md")]
struct GraphStreams;
