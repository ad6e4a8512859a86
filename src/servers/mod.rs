//! stub
pub mod sql;
