//! Both databases as their users meet them: real files, a real server, a real worker process.

mod postgres;
mod properties;
mod reading;
mod sqlite;
mod support;
