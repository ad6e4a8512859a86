//! Runs Python that nobody has read, and bounds what it can see, use and take.
//!
//! Enter at [`Python::open`] and [`Python::run`]. Invariant: a program reaches what it is given in its [`Program`] and a scratch
//! folder of its own, whatever it does; a program that misbehaves is an [`Outcome`] with a [`Fault`], never an error of the caller.
//! Deliberately absent: filters over the program's text, which are no boundary.

mod bubblewrap;
mod clock;
mod error;
mod limits;
mod outcome;
mod program;
mod request;
mod system;
#[cfg(feature = "wasm")]
mod wasm;

use std::path::PathBuf;

pub use bubblewrap::{Bubblewrap, find_program};
pub use error::Error;
pub use limits::Limits;
pub use outcome::{Fault, FaultType, File, Outcome, Table};
pub use program::{Program, Tier};

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
    /// Returns the tier that is used where none is asked for.
    #[must_use]
    pub fn default_tier() -> Tier {
        if cfg!(feature = "wasm") { Tier::Wasm } else { Tier::System }
    }

    /// Opens a tier, with directories of packages beside those of its own Python.
    ///
    /// # Errors
    /// [`Error::NotBuilt`] when the tier was left out of this build, [`Error::NoBubblewrap`] and [`Error::NoPython`] when the system
    /// lacks what the tier needs, [`Error::BundledPackages`] and [`Error::NoPackages`] for packages that it cannot load; nothing ever
    /// runs without its sandbox instead.
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

    /// Runs a program to its end or its limits; blocks the thread meanwhile.
    ///
    /// # Errors
    /// When the sandbox itself fails; whatever the program does wrong is in the outcome.
    pub fn run(&self, program: &Program, limits: &Limits) -> Result<Outcome, Error> {
        match &self.kind {
            #[cfg(feature = "wasm")]
            Kind::Wasm(interpreter) => interpreter.run(program, limits),
            Kind::System(interpreter) => interpreter.run(program, limits),
        }
    }
}
