//! A runtime for long-running, supervised agent graphs.
//!
//! Imports run one way: `ids ← graph ← checkpoint ← journal ← runner`; `llm` and `mcp` stand beside
//! the graph and know nothing of it; `swarm` joins them; `runtime` assembles; `cli` is an edge.
//! `ARCHITECTURE.md` is the map.

pub mod checkpoint;
pub mod cli;
pub mod clock;
pub mod config;
pub mod graph;
pub mod ids;
pub mod journal;
pub mod llm;
pub mod mcp;
pub mod runner;
pub mod runtime;
pub mod servers;
pub mod swarm;
