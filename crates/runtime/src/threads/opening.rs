//! The store that the settings name, behind encryption where they name keys.

use std::sync::Arc;

use crate::Error;
use perihelion_engine::checkpoint::{self, Keyring, MemoryStore, Store};
use perihelion_settings::config::{DatabaseUrl, Settings};

/// Returns the keys that the settings name; none: nothing is encrypted.
///
/// # Errors
/// [`checkpoint::Error::Keys`].
pub fn keyring(settings: &Settings) -> Result<Option<Keyring>, Error> {
    Ok(Keyring::of_found(settings.encryption.exposed())?)
}

/// Opens the store that the settings name, behind encryption where they name keys, and nothing else.
///
/// # Errors
/// As [`perihelion_engine::checkpoint::open`], and [`checkpoint::Error::Keys`].
pub async fn open_store(settings: &Settings) -> Result<Arc<dyn Store>, Error> {
    let url = settings.store.database.expose();
    Ok(checkpoint::open_sealed(url, keyring(settings)?).await?)
}

/// Opens the store that the settings name to read what is there; none is made.
///
/// The usual one that was never made is an empty one; any other is a name that was mistyped.
///
/// # Errors
/// As [`open_store`], and [`checkpoint::Error::NoDatabase`] where there is none.
pub async fn open_store_to_read(settings: &Settings) -> Result<Arc<dyn Store>, Error> {
    let url = settings.store.database.expose();
    if checkpoint::is_there(url).map_err(checkpoint::Error::from)? {
        open_store(settings).await
    } else if settings.store.database == DatabaseUrl::in_data_directory() {
        Ok(Arc::new(MemoryStore::new()))
    } else {
        let url = checkpoint::redact_url(url);
        Err(checkpoint::Error::NoDatabase { url }.into())
    }
}
