//! Changes of a tenant's users and keys, each kept together with its entry in the audit.

use chrono::{DateTime, Utc};
use perihelion_database::Transaction;
use serde_json::json;
use uuid::Uuid;

use crate::users::NewUser;
use crate::{AuditEntry, CreatedKey, Error, NewKey, People, User, audit, keys, users};

/// A change under way: all that is done in it, and what the audit says of it, is kept together or not at all.
pub struct Change<'a> {
    transaction: Transaction<'a>,
    tenant: &'a str,
    by: &'a str,
    now: DateTime<Utc>,
}

impl People {
    /// Changes users and keys of a tenant in one transaction, in the name of the one who does it.
    ///
    /// # Errors
    /// The failure of `work`, after which nothing has changed, or that of the database.
    pub async fn change<T, E: From<perihelion_database::Error>>(
        &self,
        tenant: &str,
        by: &str,
        now: DateTime<Utc>,
        work: impl AsyncFnOnce(&mut Change<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let database = self.of(tenant);
        let transaction = database.begin().await?;
        let mut change = Change { transaction, tenant, by, now };
        let done = work(&mut change).await;
        change.transaction.settle(done).await
    }
}

impl<'a> Change<'a> {
    /// Returns the transaction, for what others keep together with the change.
    pub fn transaction(&mut self) -> &mut Transaction<'a> {
        &mut self.transaction
    }

    /// Makes a key of the tenant; its secret is returned here and nowhere else.
    ///
    /// # Errors
    /// [`Error::Taken`] when a key of this name is in force, [`Error::Unfit`] for an empty or long name.
    pub async fn create_key(&mut self, new: NewKey<'_>) -> Result<CreatedKey, Error> {
        let created = keys::insert(&mut self.transaction, self.tenant, new, self.now).await?;
        self.note("key.created", &created.key.name).await?;
        Ok(created)
    }

    /// Revokes a key by its name; from the next look at it on, nobody gets in by it.
    ///
    /// # Errors
    /// [`Error::Unknown`] when no key of this name is in force.
    pub async fn revoke_key(&mut self, name: &str) -> Result<(), Error> {
        keys::revoke(&mut self.transaction, self.tenant, name, self.now).await?;
        self.note("key.revoked", name).await
    }

    /// Adds a user, as [`People::register`] does.
    ///
    /// # Errors
    /// [`Error::Taken`].
    pub async fn add_user(&mut self, new: NewUser) -> Result<User, Error> {
        let user = users::insert(&mut self.transaction, self.tenant, new, self.now).await?;
        self.note("user.added", &user.name).await?;
        Ok(user)
    }

    /// Shuts a user out, with all sessions; the name stays taken, so that nobody else is taken for them.
    ///
    /// Who is shut out already stays so, since the time when it was first done.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub async fn disable_user(&mut self, name: &str) -> Result<(), Error> {
        users::disable(&mut self.transaction, self.tenant, name, self.now).await?;
        self.note("user.disabled", name).await
    }

    async fn note(&mut self, action: &str, subject: &str) -> Result<(), Error> {
        let entry = AuditEntry {
            at: self.now,
            tenant: self.tenant.to_owned(),
            actor: self.by.to_owned(),
            action: action.to_owned(),
            subject: subject.to_owned(),
            thread: None,
            details: json!({}),
        };
        self.transaction.execute(&audit::insert(Uuid::now_v7(), &entry)).await?;
        Ok(())
    }
}
