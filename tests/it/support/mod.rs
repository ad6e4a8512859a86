//! What several subjects need: a Postgres server, a proxy that cuts connections to it, a hostile MCP server, and many;
//! an endpoint with other wires than a scripted model.

pub mod catalogue;
pub mod gateway;
pub mod hostile;
pub mod postgres;
pub mod proxy;
