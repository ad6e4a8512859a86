//! What several subjects need: a Postgres server.

pub mod postgres;
