//! The program that is measured: the one that was built beside the benchmark.

use std::path::PathBuf;

/// Returns the program's path; `cargo build --release` puts it there.
pub fn path() -> PathBuf {
    let benchmark = std::env::current_exe().unwrap();
    let program = benchmark
        .parent()
        .and_then(|of_benchmarks| of_benchmarks.parent())
        .unwrap()
        .join("perihelion");
    assert!(
        program.exists(),
        "{} is missing; build it first, with the profile of this benchmark",
        program.display()
    );
    program
}
