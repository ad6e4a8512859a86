//! Many workers on one database: every thread is gone on with, by one at a time, whoever dies.

mod crashes;
mod full;
mod parked;
pub mod processes;
mod suite;
