//! Settings: where each value comes from, and errors that point at the line and the nearest valid key.
//!
//! Enter at [`strict::parse`] for a file. Precedence everywhere: option, environment, file, default.

pub mod strict;
pub mod tls;
