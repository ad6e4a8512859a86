//! The settings of an operator, and the definitions of all metrics.
//!
//! Enter at [`config::Settings::load`] and [`metrics::install`]. Invariant: this crate opens only the settings file and
//! the files that it names. Deliberately absent: the effect of settings, and the exporters of metrics.

pub mod config;
pub mod metrics;
