//! What several subjects need: hostile MCP servers, a large catalogue, and an endpoint with other wires than a scripted
//! model.

pub mod catalogue;
pub mod gateway;
pub mod hostile;

pub use perihelion_test_database::{postgres, proxy};
