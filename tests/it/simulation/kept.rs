//! Seeds that failed once, or that reach a place worth reaching; played by every run of the tests.

/// Seed, and what it showed.
pub const KEPT: &[(u64, &str)] = &[];
