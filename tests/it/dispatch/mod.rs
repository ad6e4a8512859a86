//! Many workers on one database: every thread is resumed, by one at a time, no matter who dies.

mod absent;
mod crashes;
mod full;
mod parked;
pub mod processes;
mod stopped;
mod suite;
mod withdrawn;
mod workers;
