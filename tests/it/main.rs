//! The integration tests, in one binary.
#![expect(clippy::unwrap_used, reason = "fixtures outside test functions may fail a test as well")]

mod model;
