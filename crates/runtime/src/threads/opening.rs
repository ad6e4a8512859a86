//! The store of the settings, with encryption if they name keys.

use std::sync::Arc;

use crate::Error;
use perihelion_engine::checkpoint::{self, Keyring, MemoryStore, Store};
use perihelion_settings::config::{DatabaseUrl, Settings};

/// Returns the keys of the settings; `None` without encryption.
pub fn keyring(settings: &Settings) -> Result<Option<Keyring>, Error> {
    Ok(Keyring::of_found(settings.encryption.exposed())?)
}

/// Opens only the store of the settings, with encryption if they name keys.
pub async fn open_store(settings: &Settings) -> Result<Arc<dyn Store>, Error> {
    let url = settings.store.database.expose();
    Ok(checkpoint::open_sealed(url, keyring(settings)?).await?)
}

/// Opens the store of the settings for reading; creates none.
///
/// A missing default store counts as empty; any other missing one is a mistyped name.
///
/// # Errors
/// As [`open_store`], and [`checkpoint::Error::NoDatabase`] for a missing one.
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
