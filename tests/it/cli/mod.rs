//! The real binary, as a user meets it: arguments, both streams, exit codes, signals.

mod config;
mod crashes;
mod help;
mod inspection;
mod questions;
mod refusals;
mod runs;
mod trace_commands;
mod traces;
mod world;
