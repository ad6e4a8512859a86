//! A runtime for long-running, supervised agent graphs.
//!
//! Imports run one way: the engine is a crate below this one; `llm` and `mcp` stand beside
//! the graph and know nothing of it; `swarm` joins them; `telemetry` reads what
//! they left; `runtime` assembles; `cli` and `api` are edges.
//! `ARCHITECTURE.md` is the map.

extern crate self as perihelion;

pub mod agents;
pub mod api;
pub mod cli;
pub mod config;
pub mod dispatch;
pub mod experience;
pub mod history;
pub mod ingest;
pub mod llm;
pub mod mcp;
pub mod metrics;
pub mod nodes;
pub mod runtime;
pub mod servers;
pub mod service;
pub mod swarm;
pub mod teams;
pub mod telemetry;
pub mod worker;

pub use perihelion_engine::{
    bus, checkpoint, clock, failpoint, graph, ids, journal, observer, runner,
};

/// Declares a graph's state; see `perihelion_engine::graph_state`, whose paths this gives to users of this crate.
#[macro_export]
macro_rules! graph_state {
    ($($declaration:tt)*) => {
        $crate::__private::__graph_state! {
            ["perihelion::__private::serde" "perihelion::__private::present"]
            $($declaration)*
        }
    };
}

/// What the macros of this crate expand to; not an interface.
#[doc(hidden)]
pub mod __private {
    pub use perihelion_engine::__graph_state;
    pub use perihelion_engine::__private::{Value, present, serde};
}

/// Keeps the code in the README true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
