//! The audit log: who did what, and when; written once and never changed. Changes of a tenant's users and keys are
//! stored together with their entry in it.

use chrono::{DateTime, Utc};
use perihelion_database::{Query, Transaction, query, select, stored_row};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::{People, Result};

const PAGE: i64 = 1_000;

stored_row! {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct AuditEntry {
        pub id: Uuid,
        pub at: DateTime<Utc>,
        pub tenant: String,
        /// A user, a key or an agent.
        pub actor: String,
        /// The action, such as `approval.approved`, `agent.executed`, `key.revoked`.
        pub action: String,
        pub subject: String,
        pub thread: Option<Uuid> = "thread_id",
        /// More of it; holds no secret.
        pub details: Json,
    }
}

#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    pub thread: Option<Uuid>,
    pub before: Option<DateTime<Utc>>,
    /// With `before`, also entries of that time with smaller IDs: the ID of the last entry of the page before.
    pub before_id: Option<Uuid>,
    /// At most 1,000.
    pub limit: Option<u32>,
}

impl People {
    /// Adds an entry unless there is one of its id; durable when it returns.
    pub async fn note(&self, entry: &AuditEntry) -> Result<()> {
        self.of(&entry.tenant).execute(&insert(entry)).await?;
        Ok(())
    }

    /// Reads entries of a tenant, newest first.
    pub async fn audit(&self, tenant: &str, wanted: &AuditQuery) -> Result<Vec<AuditEntry>> {
        let before = wanted.before.map_or_else(far, |before| before.min(far()));
        let before_id = wanted.before_id.unwrap_or_default();
        let limit = wanted.limit.map_or(100, i64::from).clamp(1, PAGE);
        let find = select::<AuditEntry>(match wanted.thread {
            Some(_) => {
                "FROM audit WHERE tenant = $1 AND (at, id) < ($2, $3) AND thread_id = $5 \
                 ORDER BY at DESC, id DESC LIMIT $4"
            }
            None => {
                "FROM audit WHERE tenant = $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4"
            }
        });
        let find = find.binds((tenant, before, before_id, limit));
        let find = wanted.thread.into_iter().fold(find, Query::bind);
        Ok(self.of(tenant).rows(&find).await?)
    }
}

/// An active change: its rows and its audit entry are stored together or not at all.
pub struct Change<'a> {
    pub(crate) transaction: Transaction<'a>,
    pub(crate) tenant: &'a str,
    pub(crate) now: DateTime<Utc>,
    by: &'a str,
}

impl People {
    /// Changes users and keys of a tenant in one transaction, on behalf of an actor.
    ///
    /// # Errors
    /// The failure of `work`, after which there is no change, or that of the database.
    pub async fn change<T, E: From<perihelion_database::Error>>(
        &self,
        tenant: &str,
        by: &str,
        now: DateTime<Utc>,
        work: impl AsyncFnOnce(&mut Change<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let database = self.of(tenant);
        let transaction = database.begin().await?;
        let mut change = Change { transaction, tenant, now, by };
        let done = work(&mut change).await;
        change.transaction.settle(done).await
    }
}

impl<'a> Change<'a> {
    /// Returns the transaction, for rows that are stored together with the change.
    pub fn transaction(&mut self) -> &mut Transaction<'a> {
        &mut self.transaction
    }

    pub(crate) async fn note(&mut self, action: &str, subject: &str) -> Result<()> {
        self.note_details(action, subject, json!({})).await
    }

    pub(crate) async fn note_details(
        &mut self,
        action: &str,
        subject: &str,
        details: Json,
    ) -> Result<()> {
        let entry = AuditEntry {
            id: Uuid::now_v7(),
            at: self.now,
            tenant: self.tenant.to_owned(),
            actor: self.by.to_owned(),
            action: action.to_owned(),
            subject: subject.to_owned(),
            thread: None,
            details,
        };
        self.transaction.execute(&insert(&entry)).await?;
        Ok(())
    }
}

fn insert(entry: &AuditEntry) -> Query {
    query(
        "INSERT INTO audit (id, at, tenant, actor, action, subject, thread_id, details) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING",
    )
    .binds((entry.id, entry.at, &entry.tenant, &entry.actor, &entry.action))
    .binds((&entry.subject, entry.thread))
    .bind(entry.details.clone())
}

/// Returns a time after all entries that both databases can hold.
pub fn far() -> DateTime<Utc> {
    DateTime::from_timestamp(32_503_680_000, 0).unwrap_or_default()
}
