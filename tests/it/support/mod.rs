//! What several subjects need: a Postgres server, a proxy that cuts connections to it, a hostile MCP server, and many.

pub mod catalogue;
pub mod hostile;
pub mod postgres;
pub mod proxy;
