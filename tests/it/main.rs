//! The one integration binary; each module is a subject.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod store_suite;
mod support;
