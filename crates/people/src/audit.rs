//! The audit: who did what, when; written once and never changed. Changes of a tenant's users and keys are kept together
//! with their entry in it.

use chrono::{DateTime, Utc};
use perihelion_database::{Query, Transaction, query};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::users::NewUser;
use crate::{CreatedKey, Error, NewKey, People, User, keys, users};

/// Entries of a page at most.
const PAGE: i64 = 1_000;

/// One thing that was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub at: DateTime<Utc>,
    pub tenant: String,
    /// A user, a key or an agent.
    pub actor: String,
    /// What was done, such as `approval.approved`, `agent.executed`, `key.revoked`.
    pub action: String,
    /// What it was done to.
    pub subject: String,
    pub thread: Option<Uuid>,
    /// More of it; holds no secret.
    pub details: Json,
}

/// Which entries are wanted.
#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    pub thread: Option<Uuid>,
    /// Only entries before this time.
    pub before: Option<DateTime<Utc>>,
    /// At most 1,000.
    pub limit: Option<u32>,
}

macro_rules! entries {
    ($of:literal) => {
        concat!(
            "SELECT at, tenant, actor, action, subject, thread_id, details FROM audit
             WHERE tenant = $1 AND at < $2 ",
            $of,
            "ORDER BY at DESC, id DESC LIMIT $3"
        )
    };
}

impl People {
    /// Adds an entry; durable when it returns.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn note(&self, entry: &AuditEntry) -> Result<(), Error> {
        self.note_once(Uuid::now_v7(), entry).await
    }

    /// Adds an entry unless there is one of its id; durable when it returns.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn note_once(&self, id: Uuid, entry: &AuditEntry) -> Result<(), Error> {
        self.of(&entry.tenant).execute(&insert(id, entry)).await?;
        Ok(())
    }

    /// Reads entries of a tenant, newest first.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn audit(&self, tenant: &str, wanted: &AuditQuery) -> Result<Vec<AuditEntry>, Error> {
        let before = wanted.before.map_or_else(far, |before| before.min(far()));
        let limit = wanted.limit.map_or(100, i64::from).clamp(1, PAGE);
        let select = match wanted.thread {
            Some(_) => entries!("AND thread_id = $4 "),
            None => entries!(""),
        };
        let select = query(select).bind(tenant).bind(before).bind(limit);
        let select = wanted.thread.into_iter().fold(select, Query::bind);
        let rows = self.of(tenant).fetch_all(&select).await?;
        rows.iter()
            .map(|row| {
                Ok(AuditEntry {
                    at: row.get(0)?,
                    tenant: row.get(1)?,
                    actor: row.get(2)?,
                    action: row.get(3)?,
                    subject: row.get(4)?,
                    thread: row.get(5)?,
                    details: row.get(6)?,
                })
            })
            .collect()
    }
}

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
        self.transaction.execute(&insert(Uuid::now_v7(), &entry)).await?;
        Ok(())
    }
}

/// Adds an entry unless there is one of its id.
fn insert(id: Uuid, entry: &AuditEntry) -> Query {
    query(
        "INSERT INTO audit (id, at, tenant, actor, action, subject, thread_id, details) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING",
    )
    .binds((id, entry.at, &entry.tenant, &entry.actor, &entry.action, &entry.subject, entry.thread))
    .bind(entry.details.clone())
}

/// Returns a time after all entries that both databases can hold.
pub fn far() -> DateTime<Utc> {
    DateTime::from_timestamp(32_503_680_000, 0).unwrap_or_default()
}
