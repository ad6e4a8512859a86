//! What several subjects need: a Postgres server, and a proxy that cuts connections to it.

pub mod postgres;
pub mod proxy;
