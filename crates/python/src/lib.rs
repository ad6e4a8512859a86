//! The native core of the Python package `perihelion-agents`, a LangGraph checkpointer and store.
//!
//! Enter at [`database::Database`], which runs batches of statements on SQLite or PostgreSQL, and at
//! [`elements::Elements`], which finds what changed in a list or dict. [`seal::Seal`] compresses and encrypts rows.
//! Invariant: a batch is one transaction, and it is finished even if its caller was cancelled.
//! Absent: SQL, tables and LangGraph's contract, which are in the Python half.

mod assemble;
mod database;
mod elements;
mod error;
mod files;
mod fingerprint;
mod msgpack;
mod postgres;
mod runtime;
mod seal;
mod similarity;
mod sqlite;
mod tls;
mod value;

#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::assemble::{assemble, splice};
    #[pymodule_export]
    use crate::database::Database;
    #[pymodule_export]
    use crate::elements::Elements;
    #[pymodule_export]
    use crate::files::is_open;
    #[pymodule_export]
    use crate::runtime::shutdown;
    #[pymodule_export]
    use crate::seal::Seal;
    #[pymodule_export]
    use crate::similarity::cosines;
    #[pymodule_export]
    use crate::sqlite::{after_fork, before_fork};
}
