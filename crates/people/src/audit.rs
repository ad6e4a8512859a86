//! The audit: who did what, when; written once and never changed.

use chrono::{DateTime, Utc};
use perihelion_database::{Query, Value, query};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::{Error, People};

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
        let select = match wanted.thread {
            Some(thread) => query(
                "SELECT at, tenant, actor, action, subject, thread_id, details FROM audit \
                 WHERE tenant = $1 AND at < $2 AND thread_id = $4 ORDER BY at DESC, id DESC LIMIT $3",
            )
            .bind(tenant)
            .bind(before)
            .bind(limit(wanted))
            .bind(thread),
            None => query(
                "SELECT at, tenant, actor, action, subject, thread_id, details FROM audit \
                 WHERE tenant = $1 AND at < $2 ORDER BY at DESC, id DESC LIMIT $3",
            )
            .bind(tenant)
            .bind(before)
            .bind(limit(wanted)),
        };
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

/// Adds an entry unless there is one of its id.
pub(crate) fn insert(id: Uuid, entry: &AuditEntry) -> Query {
    query(
        "INSERT INTO audit (id, at, tenant, actor, action, subject, thread_id, details) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING",
    )
    .bind(id)
    .bind(entry.at)
    .bind(&entry.tenant)
    .bind(&entry.actor)
    .bind(&entry.action)
    .bind(&entry.subject)
    .bind(Value::Id(entry.thread))
    .bind(entry.details.clone())
}

/// Returns a time after all entries that both databases can hold.
pub fn far() -> DateTime<Utc> {
    DateTime::from_timestamp(32_503_680_000, 0).unwrap_or_default()
}

fn limit(wanted: &AuditQuery) -> i64 {
    wanted.limit.map_or(100, i64::from).clamp(1, PAGE)
}
