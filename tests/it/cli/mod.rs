//! The real binary, as a user meets it: arguments, both streams, exit codes, signals.

mod attaching;
mod config;
mod crashes;
mod elicitation;
mod encryption;
mod first_hour;
mod hands;
mod help;
mod history;
mod inspection;
mod logs;
mod metrics;
mod otlp;
mod people;
mod plugins;
mod pruning;
mod quarantine;
mod questions;
mod refusals;
mod residence;
mod runs;
mod secrets;
mod terminal;
mod trace_commands;
mod traces;
mod travels;
pub mod world;
