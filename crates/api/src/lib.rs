//! What is served over HTTP: the Agent Server API, traces for viewers that read Jaeger, numbers for Prometheus.
//!
//! Enter at [`serve::router`], which has everything that `perihelion serve` shows, or at the router of one face.
//! Invariant: a router does not know who listens to it, so one that is served without authentication stands behind a
//! guard. Deliberately absent: any knowledge of stores and projections; the edges know the façade and the service.

mod a2a;
pub mod agent_server;
mod auth;
mod callbacks;
mod conversation;
pub mod deliver;
mod event_stream;
mod health;
pub mod jaeger;
mod local;
mod mcp;
pub mod metrics;
pub mod openai;
mod openapi;
mod own;
mod page;
mod parts;
mod places;
mod questions;
mod refused_socket;
mod request_fields;
pub mod serve;
mod team;

pub use local::loopback_only;
