//! Requests for approval: one row each, from the question to what became of it.

use chrono::{DateTime, Utc};
use perihelion_database::{Row, Value, query};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Error, People};

/// Rows of a page at most.
const PAGE: i64 = 1_000;

/// How a request for approval stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    Pending,
    Approved,
    Denied,
    /// Nobody decided in time, which counted as a denial.
    TimedOut,
    /// Its thread continued, or was ended, without an answer.
    Withdrawn,
    /// It was no longer asked when its time had passed, or when a service began.
    Expired,
}

impl ApprovalStatus {
    /// Returns the word as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::TimedOut => "timed_out",
            Self::Withdrawn => "withdrawn",
            Self::Expired => "expired",
        }
    }

    fn is_decision(self) -> bool {
        matches!(self, Self::Approved | Self::Denied | Self::TimedOut)
    }

    fn read(word: &str) -> Self {
        let all = [Self::Pending, Self::Approved, Self::Denied, Self::TimedOut, Self::Withdrawn];
        all.into_iter().find(|one| one.as_str() == word).unwrap_or(Self::Expired)
    }
}

/// A request for approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The id of the thread's interrupt.
    pub id: Uuid,
    pub tenant: String,
    pub thread: Uuid,
    pub agent: String,
    /// `server.tool`.
    pub tool: String,
    pub status: ApprovalStatus,
    pub asked_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub decided_at: Option<DateTime<Utc>>,
    /// Who decided, if a person did.
    pub decided_by: Option<String>,
}

impl People {
    /// Notes a request that is open; one that is known stays as it is.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn approval_asked(&self, asked: &ApprovalRequest) -> Result<(), Error> {
        let insert = query(
            "INSERT INTO approval_request (id, tenant, thread_id, agent, tool, status, asked_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7) ON CONFLICT (id) DO NOTHING",
        )
        .bind(asked.id)
        .bind(&asked.tenant)
        .bind(asked.thread)
        .bind(&asked.agent)
        .bind(&asked.tool)
        .bind(asked.asked_at)
        .bind(asked.expires_at);
        self.of(&asked.tenant).execute(&insert).await?;
        Ok(())
    }

    /// Notes what became of a request; false when something had become of it before. A decision counts although
    /// somebody who looked before it was noted took the request for withdrawn.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn approval_ended(
        &self,
        id: Uuid,
        status: ApprovalStatus,
        by: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<bool, Error> {
        let update = query(
            "UPDATE approval_request SET status = $2, decided_at = $3, decided_by = $4 \
             WHERE id = $1 AND (status = 'pending' OR (status = 'withdrawn' AND $5 = 1))",
        )
        .bind(id)
        .bind(status.as_str())
        .bind(now)
        .bind(Value::Text(by.map(str::to_owned)))
        .bind(i64::from(status.is_decision()));
        Ok(self.of_all().execute(&update).await? > 0)
    }

    /// Returns pending requests of all tenants that ran out before a time, oldest first.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn approvals_due(
        &self,
        before: DateTime<Utc>,
        limit: u32,
    ) -> Result<Vec<ApprovalRequest>, Error> {
        let find = query(
            "SELECT id, tenant, thread_id, agent, tool, status, asked_at, expires_at, decided_at, decided_by \
             FROM approval_request WHERE status = 'pending' AND expires_at < $1 ORDER BY expires_at LIMIT $2",
        );
        let find = find.bind(before).bind(i64::from(limit));
        self.of_all().fetch_all(&find).await?.iter().map(read).collect()
    }

    /// Returns the requests of a thread that are pending.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn approvals_pending(
        &self,
        tenant: &str,
        thread: Uuid,
    ) -> Result<Vec<ApprovalRequest>, Error> {
        let find = query(
            "SELECT id, tenant, thread_id, agent, tool, status, asked_at, expires_at, decided_at, decided_by \
             FROM approval_request WHERE tenant = $1 AND thread_id = $2 AND status = 'pending'",
        );
        let find = find.bind(tenant).bind(thread);
        self.of(tenant).fetch_all(&find).await?.iter().map(read).collect()
    }

    /// Lists a tenant's requests, newest first.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn approvals(
        &self,
        tenant: &str,
        limit: Option<u32>,
    ) -> Result<Vec<ApprovalRequest>, Error> {
        let find = query(
            "SELECT id, tenant, thread_id, agent, tool, status, asked_at, expires_at, decided_at, decided_by \
             FROM approval_request WHERE tenant = $1 ORDER BY asked_at DESC, id LIMIT $2",
        );
        let limit = limit.map_or(100, i64::from).clamp(1, PAGE);
        let find = find.bind(tenant).bind(limit);
        self.of(tenant).fetch_all(&find).await?.iter().map(read).collect()
    }
}

fn read(row: &Row) -> Result<ApprovalRequest, Error> {
    Ok(ApprovalRequest {
        id: row.get(0)?,
        tenant: row.get(1)?,
        thread: row.get(2)?,
        agent: row.get(3)?,
        tool: row.get(4)?,
        status: ApprovalStatus::read(&row.get::<String>(5)?),
        asked_at: row.get(6)?,
        expires_at: row.get(7)?,
        decided_at: row.get(8)?,
        decided_by: row.get(9)?,
    })
}
