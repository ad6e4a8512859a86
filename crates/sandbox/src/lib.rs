//! Runs untrusted Python, and limits its view, its resources and its output.
//!
//! Enter at [`Python::open`] and [`Python::run`]. Invariant: a program reaches only the inputs in its [`Program`] and
//! its own scratch folder. A program that misbehaves is an [`Outcome`] with a [`Fault`], never an error of the caller.
//! Deliberately absent: filters over the program's text, which are no boundary.

mod bubblewrap;
mod program;
mod request;
mod system;
#[cfg(feature = "wasm")]
mod wasm;

use perihelion_clock as clock;
use std::path::PathBuf;

pub use bubblewrap::{Bubblewrap, find_program};
pub use program::{Fault, FaultType, File, Limits, Outcome, Program, Table, Tier};

/// A Python that runs one program at a time per call, from any number of threads.
pub struct Python {
    kind: Kind,
}

enum Kind {
    #[cfg(feature = "wasm")]
    Wasm(wasm::Interpreter),
    System(system::Interpreter),
}

impl Python {
    pub fn default_tier() -> Tier {
        if cfg!(feature = "wasm") { Tier::Wasm } else { Tier::System }
    }

    /// Opens a tier, with directories of packages in addition to those of its own Python.
    ///
    /// # Errors
    /// [`Error::NotBuilt`] if the tier was left out of this build, [`Error::NoBubblewrap`] and [`Error::NoPython`] if
    /// the system lacks the parts of the tier, [`Error::BundledPackages`] and [`Error::NoPackages`] for packages that
    /// it cannot load. Programs never run without a sandbox.
    pub fn open(tier: Tier, packages: &[PathBuf]) -> Result<Self, Error> {
        let kind = match tier {
            Tier::Wasm if !packages.is_empty() => return Err(Error::BundledPackages),
            #[cfg(feature = "wasm")]
            Tier::Wasm => Kind::Wasm(wasm::Interpreter::open()?),
            #[cfg(not(feature = "wasm"))]
            Tier::Wasm => return Err(Error::NotBuilt),
            Tier::System => Kind::System(system::Interpreter::open(packages)?),
        };
        Ok(Self { kind })
    }

    /// Runs a program to its end or its limits; blocks the thread.
    ///
    /// # Errors
    /// If the sandbox itself fails; faults of the program are in the outcome.
    pub fn run(&self, program: &Program, limits: &Limits) -> Result<Outcome, Error> {
        match &self.kind {
            #[cfg(feature = "wasm")]
            Kind::Wasm(interpreter) => interpreter.run(program, limits),
            Kind::System(interpreter) => interpreter.run(program, limits),
        }
    }
}

/// Why a sandbox is missing or failed; a program's own failures are a [`Fault`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The build leaves the tier out.
    #[error(
        "this build bundles no Python; build with the feature `python-wasm`, or pass `--tier system`"
    )]
    NotBuilt,
    /// Bubblewrap is missing, and programs never run without it.
    #[error(
        "`bwrap` is not on the PATH, and the system's Python runs only in it; install the package bubblewrap"
    )]
    NoBubblewrap,
    #[error("`python3` is not on the PATH; install Python, or pass `--tier wasm`")]
    NoPython,
    /// Bubblewrap is there but may not make its namespaces.
    #[error(
        "bubblewrap cannot confine Python; install bubblewrap 0.8 and allow unprivileged user namespaces, or pass `--tier wasm`: {0}"
    )]
    Bubblewrap(String),
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
    /// A directory of packages does not exist.
    #[error(
        "cannot use the packages; pass the site-packages directory of an environment for this Python: {}: {source}",
        path.display()
    )]
    NoPackages { path: PathBuf, source: std::io::Error },
    /// The interpreter could not be loaded or its state could not be prepared.
    #[error("cannot prepare the Python interpreter: {0}")]
    Interpreter(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The scratch folder could not be used.
    #[error("cannot use the scratch folder {}: {source}", path.display())]
    Scratch { path: PathBuf, source: std::io::Error },
    /// The request could not be written for the interpreter.
    #[error("cannot write the inputs as JSON: {0}")]
    Inputs(#[from] serde_json::Error),
}
