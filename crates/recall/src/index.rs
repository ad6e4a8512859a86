//! What every index can do.

use async_trait::async_trait;

use crate::{Error, Found, Item, Scope, Search};

/// Keeps items and finds them again; the same items give the same list in each implementation.
#[async_trait]
pub trait Index: Send + Sync {
    /// Keeps items, each in place of the one with its id; all of them or none.
    ///
    /// # Errors
    /// [`Error::Unnamed`] for an item without an id, [`Error::Database`].
    async fn put(&self, scope: &Scope, kind: &str, items: &[Item]) -> Result<(), Error>;

    /// Finds what fits, best first; equal ones in the order in which they were kept.
    ///
    /// # Errors
    /// [`Error::Database`], [`Error::Damaged`].
    async fn search(&self, search: &Search) -> Result<Found, Error>;

    /// Removes items by id and returns how many there were; when it returns nobody finds them any more.
    ///
    /// # Errors
    /// [`Error::Database`], [`Error::Damaged`].
    async fn remove(&self, scope: &Scope, kind: &str, ids: &[String]) -> Result<u64, Error>;

    /// Removes all items of a parent, as [`Index::remove`] does.
    ///
    /// # Errors
    /// As [`Index::remove`].
    async fn remove_parent(&self, scope: &Scope, kind: &str, parent: &str) -> Result<u64, Error>;

    /// Returns how many items of a kind lie in a scope.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn count(&self, scope: &Scope, kind: &str) -> Result<u64, Error>;
}
