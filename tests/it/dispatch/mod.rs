//! Many workers on one database: every thread is gone on with, by one at a time, whoever dies.

mod crashes;
mod full;
mod parked;
mod processes;
mod suite;
