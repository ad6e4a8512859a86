//! Many workers on one database: every thread is resumed, by one at a time, no matter who dies.

mod absent;
mod bus_processes;
mod crashes;
mod full;
#[path = "../../../crates/engine/tests/it/bus/heard.rs"]
mod heard;
mod parked;
pub mod processes;
mod stopped;
mod suite;
mod withdrawn;
mod workers;
