//! Both databases as their users meet them: real files, a real server, a real worker process.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::panic, reason = "a test ends at what it did not expect")]
#![expect(clippy::print_stderr, reason = "says why nothing was tested")]

mod catalog;
mod filters;
mod hidden;
mod ordinary;
mod postgres;
mod properties;
mod reading;
mod rewriting;
mod sqlite;
mod support;
