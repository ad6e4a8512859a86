//! One tokio runtime per process, made at first use, so also after a fork, and stopped at exit.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

/// Threads that drive connections; waiting for a database needs few.
const WORKERS: usize = 2;

struct Shared {
    process: u32,
    runtime: Arc<Runtime>,
}

static SHARED: Mutex<Option<Shared>> = Mutex::new(None);

/// Returns the runtime of this process.
pub fn shared() -> std::io::Result<Arc<Runtime>> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some(found) = shared.as_ref().filter(|found| found.process == process) {
        return Ok(found.runtime.clone());
    }
    // A runtime from before a fork has no threads here: joining them would wait for ever.
    std::mem::forget(shared.take());
    let mut builder = Builder::new_multi_thread();
    let runtime =
        Arc::new(builder.worker_threads(WORKERS).thread_name("perihelion").enable_all().build()?);
    *shared = Some(Shared { process, runtime: runtime.clone() });
    Ok(runtime)
}

/// Stops the runtime; `atexit` calls this before the interpreter ends.
#[pyfunction]
pub fn shutdown(py: Python<'_>) {
    let found = SHARED.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(found) = found.filter(|found| found.process == std::process::id()) else { return };
    py.detach(|| {
        if let Ok(runtime) = Arc::try_unwrap(found.runtime) {
            runtime.shutdown_timeout(std::time::Duration::from_secs(5));
        }
    });
}
