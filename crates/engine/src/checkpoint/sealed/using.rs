//! Whether a database is one that is encrypted.

use super::super::{Error, ThreadFilter, Threads};
use super::keyring::Keyring;
use super::label::{key_of, read_label};

/// Threads that are looked at: where encryption is in use, every new one is encrypted.
const LOOKED_AT: u32 = 200;

/// Refuses to write to a database whose newest threads are encrypted, unless a key fits one of them.
pub(in super::super) async fn check(
    store: &(impl Threads + ?Sized),
    keys: Option<&Keyring>,
) -> Result<(), Error> {
    let filter = ThreadFilter { limit: Some(LOOKED_AT), ..ThreadFilter::default() };
    let mut refused = None;
    for info in store.list(&filter).await? {
        let Some(key) = key_of(&info) else { continue };
        if keys.is_some_and(|keys| read_label(keys, &info).is_ok()) {
            return Ok(());
        }
        refused.get_or_insert(key);
    }
    refused.map_or(Ok(()), |key| Err(Error::Unsealed { key }))
}
