//! CPython as WebAssembly on its own WASI host.
//!
//! Enter at [`Interpreter::run`]. Each run is a fresh instance of one snapshot of a started interpreter, mapped
//! copy-on-write. Invariant: this module opens no file, socket or process of the host. The guest sees only
//! [`files::Files`], its clock is its used fuel, and its randomness derives from a seed. Deliberately absent: the stock
//! WASI host, whose sleep outlives every limit and whose output is unlimited.

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
    /// [`Error::Interpreter`] if this machine cannot run it.
    pub fn open() -> Result<Self, Error> {
        let failed = |error: wasmtime::Error| Error::Interpreter(error.into());
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
