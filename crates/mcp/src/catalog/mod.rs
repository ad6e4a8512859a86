//! The tool definitions of servers: requested, read, and stored on disk.
//!
//! Enter at [`listing::Listing`]. Invariant: a server's definitions are a value ([`definitions::Definitions`]), from
//! which all displays and checks are computed; its schemas are compiled here, once. Deliberately absent: calls.

pub(super) mod cache;
pub(super) mod definitions;
pub(super) mod listing;
#[cfg(test)]
pub(super) mod listing_tests;
pub(super) mod pages;
