//! Many workers on one database: every thread is gone on with, by one at a time, whoever dies.

mod crashes;
mod parked;
pub mod processes;
mod suite;
