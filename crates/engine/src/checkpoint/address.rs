//! From a database address to the store behind it.

use std::sync::Arc;

use perihelion_database::address::{self, Address};

use super::{Error, Keyring, MemoryStore, PostgresStore, SealedStore, SqliteStore, Store};

/// Opens the store an address names, migrating it when needed.
///
/// `memory:` keeps threads for the life of the process, `sqlite:PATH` or a bare path is a file (made
/// when missing), `postgres://` and `postgresql://` name a server.
///
/// # Errors
/// [`Error::Database`] for an address of another form or a database that cannot be opened, and for a database that a
/// newer version migrated.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, Error> {
    Ok(match address::read(url)? {
        Address::Memory => Arc::new(MemoryStore::new()),
        Address::Server => Arc::new(PostgresStore::open(url).await?),
        Address::File(_) => Arc::new(SqliteStore::open(url).await?),
    })
}

/// Opens the store of an address, with encryption if there are keys.
///
/// # Errors
/// As [`open`].
pub async fn open_sealed(url: &str, keys: Option<Keyring>) -> Result<Arc<dyn Store>, Error> {
    let store = open(url).await?;
    Ok(match keys {
        None => store,
        Some(keys) => Arc::new(SealedStore::new(store, keys)),
    })
}
