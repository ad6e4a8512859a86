//! The binary: all code is in the library's `cli` module.

/// The allocator of the program: smaller and quicker than the system's with thousands of streams (docs/project/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    perihelion::cli::main()
}
