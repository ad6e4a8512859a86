//! Seeds that failed once, or that reach a place worth reaching; played by every run of the tests.

/// Seed, and what it showed.
pub const KEPT: &[(u64, &str)] = &[
    (236_671_393_205_342, "a fork's steps were put down to its source, by the record itself"),
    (262_283_952_038_185, "a cancel beside an asynchronous commit whose reply was on its way"),
];
