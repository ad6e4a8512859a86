//! Requests for approval: one row each, from the question to what became of it.

use chrono::{DateTime, Utc};
use perihelion_database::{Row, query, stored_words};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Error, People};

/// Rows of a page at most.
const PAGE: i64 = 1_000;

stored_words! {
    /// How a request for approval stands.
    ApprovalStatus {
        Pending = "pending",
        Approved = "approved",
        Denied = "denied",
        /// Nobody decided in time, which counted as a denial.
        TimedOut = "timed_out",
        /// Its thread continued, or was ended, without an answer.
        Withdrawn = "withdrawn",
        /// It was no longer asked when its time had passed, or when a service began.
        Expired = "expired",
    }
}

impl ApprovalStatus {
    fn is_decision(self) -> bool {
        matches!(self, Self::Approved | Self::Denied | Self::TimedOut)
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

macro_rules! requests {
    ($which:literal) => {
        concat!(
            "SELECT id, tenant, thread_id, agent, tool, status, asked_at, expires_at, decided_at, decided_by
             FROM approval_request WHERE ",
            $which
        )
    };
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
        .binds((asked.id, &asked.tenant, asked.thread, &asked.agent, &asked.tool, asked.asked_at))
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
        .binds((id, status.as_str(), now, by, i64::from(status.is_decision())));
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
        let find =
            query(requests!("status = 'pending' AND expires_at < $1 ORDER BY expires_at LIMIT $2"));
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
        let find = query(requests!("tenant = $1 AND thread_id = $2 AND status = 'pending'"));
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
        let find = query(requests!("tenant = $1 ORDER BY asked_at DESC, id LIMIT $2"));
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
        status: ApprovalStatus::from_name(&row.get::<String>(5)?)
            .unwrap_or(ApprovalStatus::Expired),
        asked_at: row.get(6)?,
        expires_at: row.get(7)?,
        decided_at: row.get(8)?,
        decided_by: row.get(9)?,
    })
}
