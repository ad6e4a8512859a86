//! The native core of `perihelion-agents`: databases, sealed rows and the encoding of lists and dicts by their changes.

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
}
