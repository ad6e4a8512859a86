use std::path::PathBuf;

/// Why a sandbox could not be had or failed; a program's own failures are a [`crate::Fault`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The build leaves the tier out.
    #[error(
        "this build bundles no Python; build with the feature `python-wasm`, or pass `--tier system`"
    )]
    NotBuilt,
    /// There is no bubblewrap, and nothing runs without it.
    #[error(
        "`bwrap` is not on the PATH, and the system's Python runs only in it; install the package bubblewrap"
    )]
    NoBubblewrap,
    /// There is no Python.
    #[error("`python3` is not on the PATH; install Python, or pass `--tier wasm`")]
    NoPython,
    /// Bubblewrap is there but may not make its namespaces.
    #[error(
        "bubblewrap cannot confine Python; install bubblewrap 0.8 and allow unprivileged user namespaces, or pass `--tier wasm`: {0}"
    )]
    Bubblewrap(String),
    /// The shell that starts bubblewrap cannot be started.
    #[error("cannot start the sandbox: {0}")]
    Start(#[source] std::io::Error),
    /// The system call filter cannot be made, on a machine whose system calls are unknown for one.
    #[error("cannot filter system calls on {arch}; pass `--tier wasm`: {source}", arch = std::env::consts::ARCH)]
    Filter {
        #[from]
        source: seccompiler::BackendError,
    },
    /// The bundled Python loads no native code.
    #[error(
        "the bundled Python cannot load packages from a directory: pass `--tier system` with `--site-packages`"
    )]
    BundledPackages,
    /// A directory of packages is none.
    #[error(
        "cannot use the packages; pass the site-packages directory of an environment for this Python: {}: {source}",
        path.display()
    )]
    NoPackages { path: PathBuf, source: std::io::Error },
    /// The interpreter could not be loaded or its state could not be prepared.
    #[error("cannot prepare the Python interpreter: {0}")]
    Interpreter(String),
    /// The scratch folder could not be used.
    #[error("cannot use the scratch folder {}: {source}", path.display())]
    Scratch { path: PathBuf, source: std::io::Error },
    /// The request could not be written for the interpreter.
    #[error("cannot write the inputs as JSON: {0}")]
    Inputs(#[from] serde_json::Error),
}
