//! What is served over HTTP: so far, traces for viewers that read Jaeger, and numbers for Prometheus.
//!
//! Enter at [`jaeger::router`] and [`metrics::router`]; a server mounts them beside what else it serves. Invariant: a router does not know who
//! listens to it, so whoever serves one without authentication wraps it in [`loopback_only`]. Deliberately
//! absent: any knowledge of stores and projections; the edges know the façade.

pub mod jaeger;
mod local;
pub mod metrics;

pub use local::loopback_only;
