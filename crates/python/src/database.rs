//! A database as Python uses it: batches of statements, waited for or with a callback.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::Error;
use crate::postgres::Postgres;
use crate::runtime;
use crate::sqlite::Sqlite;
use crate::value::{Rows, Statement};

#[derive(Clone)]
enum Backend {
    Sqlite(Arc<Sqlite>),
    Postgres(Arc<Postgres>),
}

impl Backend {
    fn open(path: &str, pool_size: usize, read_only: bool) -> Result<Self, Error> {
        if is_postgres(path) {
            return Ok(Self::Postgres(Arc::new(Postgres::open(path, pool_size)?)));
        }
        Ok(Self::Sqlite(Sqlite::open(path, read_only)?))
    }

    fn wait(self, batch: Vec<Statement>, writes: bool) -> Result<Vec<Rows>, Error> {
        match self {
            Self::Sqlite(sqlite) => sqlite.run(&batch, writes),
            // On the thread of its connection: else each message would wake another thread.
            Self::Postgres(postgres) => {
                let runtime = runtime::shared()?;
                let job = runtime.spawn(async move { postgres.run(&batch, writes).await });
                runtime.block_on(job).map_err(|_| Error::Closed)?
            }
        }
    }

    /// Runs statements on another thread, and there what follows from their rows.
    fn spawn(
        self,
        batch: Vec<Statement>,
        writes: bool,
        then: impl FnOnce(Result<Vec<Rows>, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let runtime = runtime::shared()?;
        match self {
            Self::Sqlite(sqlite) => {
                runtime.spawn_blocking(move || then(sqlite.run(&batch, writes)));
            }
            Self::Postgres(postgres) => {
                runtime.spawn(async move { then(postgres.run(&batch, writes).await) });
            }
        }
        Ok(())
    }
}

fn is_postgres(path: &str) -> bool {
    path.starts_with("postgres://")
        || path.starts_with("postgresql://")
        || path.contains("host=")
        || path.contains("dbname=")
}

struct Open {
    process: u32,
    backend: Backend,
}

/// A SQLite or PostgreSQL database; usable from all threads, and again after a fork.
#[pyclass(frozen, module = "perihelion._native")]
pub struct Database {
    path: String,
    pool_size: usize,
    read_only: bool,
    open: Mutex<Open>,
}

impl Database {
    fn backend(&self) -> Result<Backend, Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if open.process != process && self.path != ":memory:" {
            let backend = Backend::open(&self.path, self.pool_size, self.read_only)?;
            // Connections belong to the process before the fork: closing them here would end them there.
            std::mem::forget(std::mem::replace(&mut *open, Open { process, backend }));
        }
        Ok(open.backend.clone())
    }
}

fn statements(batch: &Bound<'_, PyAny>) -> PyResult<Vec<Statement>> {
    batch.try_iter()?.map(|statement| Statement::from_python(&statement?)).collect()
}

fn answers<'py>(py: Python<'py>, all: &[Rows]) -> PyResult<Bound<'py, PyList>> {
    let row = |row: &Vec<_>| {
        let values = row.iter().map(|value: &crate::value::Value| value.to_python(py));
        PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)
    };
    let rows = |rows: &Rows| PyList::new(py, rows.iter().map(row).collect::<PyResult<Vec<_>>>()?);
    PyList::new(py, all.iter().map(rows).collect::<PyResult<Vec<_>>>()?)
}

#[pymethods]
impl Database {
    #[new]
    #[pyo3(signature = (path, *, pool_size = 10, read_only = false))]
    fn new(path: String, pool_size: usize, read_only: bool) -> Result<Self, Error> {
        let backend = Backend::open(&path, pool_size, read_only)?;
        let open = Mutex::new(Open { process: std::process::id(), backend });
        Ok(Self { path, pool_size, read_only, open })
    }

    /// Whether this is PostgreSQL.
    #[getter]
    fn is_postgres(&self) -> bool {
        is_postgres(&self.path)
    }

    /// Runs statements as one transaction, without the GIL.
    fn run<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, PyAny>,
        writes: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let batch = statements(batch)?;
        let backend = self.backend()?;
        let all = py.detach(|| backend.wait(batch, writes))?;
        answers(py, &all)
    }

    /// Runs statements as one transaction; `done(answers, error)` is called on another thread.
    ///
    /// The transaction is finished even without a waiting caller.
    fn submit(&self, batch: &Bound<'_, PyAny>, writes: bool, done: Py<PyAny>) -> PyResult<()> {
        let batch = statements(batch)?;
        let backend = self.backend()?;
        backend.spawn(batch, writes, move |result| {
            Python::try_attach(|py| {
                let answered = match result.map_err(PyErr::from).and_then(|all| answers(py, &all)) {
                    Ok(all) => done.call1(py, (all, py.None())),
                    Err(error) => done.call1(py, (py.None(), error)),
                };
                if let Err(error) = answered {
                    error.write_unraisable(py, Some(done.bind(py)));
                }
            });
        })?;
        Ok(())
    }

    /// Closes all connections; later calls fail.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let backend = self.backend()?;
        py.detach(|| match backend {
            Backend::Sqlite(sqlite) => sqlite.close(),
            Backend::Postgres(postgres) => postgres.close(),
        });
        Ok(())
    }
}
