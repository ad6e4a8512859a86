//! Changes of an index alone, without rows of a caller.

use perihelion_database::query;
use perihelion_recall::{Error, Found, Item, Scope, Search, StoredIndex};

use super::reference::Reference;

#[async_trait::async_trait]
pub trait Index: Send + Sync {
    async fn put(&self, scope: &Scope, kind: &str, items: &[Item]) -> Result<(), Error>;

    async fn search(&self, search: &Search) -> Result<Found, Error>;

    async fn remove(&self, scope: &Scope, kind: &str, ids: &[String]) -> Result<u64, Error>;

    async fn remove_parent(&self, scope: &Scope, kind: &str, parent: &str) -> Result<u64, Error>;

    async fn count(&self, scope: &Scope, kind: &str) -> Result<u64, Error>;
}

#[async_trait::async_trait]
impl Index for StoredIndex {
    async fn put(&self, scope: &Scope, kind: &str, items: &[Item]) -> Result<(), Error> {
        let database = self.database_of(scope);
        let mut transaction = database.begin().await?;
        Self::put_in(&mut transaction, scope, kind, items).await?;
        Ok(transaction.commit().await?)
    }

    async fn search(&self, search: &Search) -> Result<Found, Error> {
        self.search(search).await
    }

    async fn remove(&self, scope: &Scope, kind: &str, ids: &[String]) -> Result<u64, Error> {
        let database = self.database_of(scope);
        let mut transaction = database.begin().await?;
        let removed = Self::remove_in(&mut transaction, scope, kind, ids).await?;
        transaction.commit().await?;
        self.database().scrub().await?;
        Ok(removed)
    }

    async fn remove_parent(&self, scope: &Scope, kind: &str, parent: &str) -> Result<u64, Error> {
        let database = self.database_of(scope);
        let mut transaction = database.begin().await?;
        let removed = Self::remove_parent_in(&mut transaction, scope, kind, parent).await?;
        transaction.commit().await?;
        self.database().scrub().await?;
        Ok(removed)
    }

    async fn count(&self, scope: &Scope, kind: &str) -> Result<u64, Error> {
        let read =
            query("SELECT items FROM recall_space WHERE tenant = $1 AND owner = $2 AND kind = $3");
        let read = read.binds((scope.tenant(), scope.owner(), kind));
        let row = self.database_of(scope).fetch_optional(&read).await?;
        Ok(row.map_or(Ok(0), |row| row.get::<i64>(0))?.unsigned_abs())
    }
}

#[async_trait::async_trait]
impl Index for Reference {
    async fn put(&self, scope: &Scope, kind: &str, items: &[Item]) -> Result<(), Error> {
        self.put(scope, kind, items);
        Ok(())
    }

    async fn search(&self, search: &Search) -> Result<Found, Error> {
        Ok(self.search(search))
    }

    async fn remove(&self, scope: &Scope, kind: &str, ids: &[String]) -> Result<u64, Error> {
        Ok(self.within(scope, kind, |space| space.drop_those(|item| ids.contains(&item.id))))
    }

    async fn remove_parent(&self, scope: &Scope, kind: &str, parent: &str) -> Result<u64, Error> {
        let is_of = |item: &Item| item.parent.as_deref() == Some(parent);
        Ok(self.within(scope, kind, |space| space.drop_those(is_of)))
    }

    async fn count(&self, scope: &Scope, kind: &str) -> Result<u64, Error> {
        Ok(self.within(scope, kind, |space| space.items.len() as u64))
    }
}
