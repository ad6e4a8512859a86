//! stub
pub mod guard;
