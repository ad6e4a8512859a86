//! What servers say of their tools: asked for, read, and kept on disk.
//!
//! Enter at [`listing::Listing`]. Invariant: what a server said is a value ([`definitions::Definitions`]), and all that
//! is shown or checked is computed from it; its schemas are compiled here, once. Deliberately absent: calls.

pub(super) mod cache;
pub(super) mod definitions;
pub(super) mod listing;
#[cfg(test)]
pub(super) mod listing_tests;
pub(super) mod pages;
