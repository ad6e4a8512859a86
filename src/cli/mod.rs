//! (to be written)

pub mod trace;
