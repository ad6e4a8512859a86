//! The settings of an operator, and the definitions of what the program counts and times.
//!
//! Enter at [`config::Settings::load`] and [`metrics::install`]. Invariant: nothing here opens a file but the settings file
//! and what it names. Deliberately absent: what any setting does, and the exporters of metrics.

pub mod config;
pub mod metrics;
