//! CPython as WebAssembly on a WASI host of its own.
//!
//! Enter at [`Interpreter::run`]. Each run is a fresh instance of one snapshot of a started interpreter, mapped copy-on-write.
//! Invariant: nothing here opens a file, a socket or a process of the host; the guest's whole world is [`files::Files`], its clock
//! is the fuel it burnt, and its randomness follows from a seed. Deliberately absent: the stock WASI host, whose sleep outlives
//! every limit and whose output has none.

mod descriptors;
mod embedded;
mod files;
mod guest;
mod host;
mod open;
mod paths;
mod run;
mod time;

use std::sync::Arc;

use wasmtime::{Engine, InstancePre, Linker};

use crate::Error;
use host::Host;

/// The loaded interpreter.
pub struct Interpreter {
    engine: Engine,
    instance: InstancePre<Host>,
    /// The driver as the interpreter compiled it.
    driver: Arc<Vec<u8>>,
}

impl Interpreter {
    /// Loads the interpreter.
    ///
    /// # Errors
    /// [`Error::Interpreter`] where this machine cannot run it.
    pub fn open() -> Result<Self, Error> {
        let failed = |error: wasmtime::Error| Error::Interpreter(format!("{error:#}"));
        let mut config = embedded::settings();
        // Python bounds its own recursion within this; what gets past it is a trap.
        config.max_wasm_stack(run::WASM_STACK);
        config.async_stack_size(run::HOST_STACK);
        let engine = Engine::new(&config).map_err(failed)?;
        let module = embedded::load(&engine)?;
        let mut linker = Linker::new(&engine);
        host::link(&mut linker).map_err(failed)?;
        let instance = linker.instantiate_pre(&module).map_err(failed)?;
        let mut interpreter = Self { engine, instance, driver: Arc::default() };
        interpreter.driver = Arc::new(interpreter.compiled_driver()?);
        Ok(interpreter)
    }
}
