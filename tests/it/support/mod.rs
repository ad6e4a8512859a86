//! What several subjects need: a Postgres server, a proxy that cuts connections to it, and a hostile MCP server.

pub mod hostile;
pub mod postgres;
pub mod proxy;
