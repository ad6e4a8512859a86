//! A runtime for long-running, supervised agent graphs.
//!
//! Imports run one way: the engine is a crate below this one; `llm` and `mcp` are independent of the graph; `swarm`
//! joins them; `telemetry` reads their records; `runtime` assembles; `cli` and `api` are the edges. `ARCHITECTURE.md`
//! is the map.

pub mod cli;
pub mod demo;

pub use cli::{Serving, main_with as run, serve};

pub use perihelion_agents as agents;
pub use perihelion_api as api;
pub use perihelion_engine::{
    bus, checkpoint, clock, failpoint, graph, ids, journal, observer, runner,
};
pub use perihelion_ingest as ingest;
pub use perihelion_llm as llm;
pub use perihelion_mcp as mcp;
pub use perihelion_runtime as runtime;
pub use perihelion_runtime::{GraphParts, Graphs, OwnGraph, dispatch, learned};
pub use perihelion_servers as servers;
pub use perihelion_service as service;
pub use perihelion_service::worker;
pub use perihelion_settings::{config, metrics};
pub use perihelion_star as swarm;
pub use perihelion_star::nodes;
pub use perihelion_telemetry as telemetry;
pub use perihelion_telemetry::history;

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

/// Support for the macros of this crate; not an interface.
#[doc(hidden)]
pub mod __private {
    pub use perihelion_engine::__graph_state;
    pub use perihelion_engine::__private::{Value, present, serde};
}

/// Keeps the code in the README true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles the code of the guide, and runs it.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides/serving-graphs.md")]
struct ServingGraphs;

#[cfg(doctest)]
#[doc = include_str!("../docs/guides/coming-from-langgraph.md")]
struct ComingFromLangGraph;

#[cfg(doctest)]
#[doc = include_str!("../docs/guides/custom-agents.md")]
struct CustomAgents;

#[cfg(doctest)]
#[doc = include_str!("../docs/guides/tool-agents.md")]
struct ToolAgents;

#[cfg(doctest)]
#[doc = include_str!("../docs/guides/testing-graphs.md")]
struct TestingGraphs;
