//! Requests for approval: one row each, from the question to what became of it.

use chrono::{DateTime, Utc};
use perihelion_database::{Query, query, select, stored_row, stored_words};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{People, Result};

const PAGE: i64 = 1_000;

stored_words! {
    /// The status of a request for approval.
    ApprovalStatus {
        Pending = "pending",
        Approved = "approved",
        Denied = "denied",
        /// The request expired, which counted as a denial.
        TimedOut = "timed_out",
        /// Its thread continued, or was ended, without an answer.
        Withdrawn = "withdrawn",
        /// It was no longer asked when its time had passed, or when a service began; or no process could deny it.
        Expired = "expired",
    }
}

impl ApprovalStatus {
    fn is_decision(self) -> bool {
        matches!(self, Self::Approved | Self::Denied | Self::TimedOut)
    }
}

stored_row! {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct ApprovalRequest {
        /// The id of the thread's interrupt.
        pub id: Uuid,
        pub tenant: String,
        pub thread: Uuid = "thread_id",
        pub agent: String,
        /// `server.tool`.
        pub tool: String,
        pub status: ApprovalStatus,
        pub asked_at: DateTime<Utc>,
        pub expires_at: DateTime<Utc>,
        pub decided_at: Option<DateTime<Utc>>,
        /// The person who decided, if one did.
        pub decided_by: Option<String>,
    }
}

impl People {
    /// Stores an open request; a known one stays unchanged.
    pub async fn approval_asked(&self, asked: &ApprovalRequest) -> Result<()> {
        let insert = query(
            "INSERT INTO approval_request (id, tenant, thread_id, agent, tool, status, asked_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7) ON CONFLICT (id) DO NOTHING",
        )
        .binds((asked.id, &asked.tenant, asked.thread, &asked.agent, &asked.tool, asked.asked_at))
        .bind(asked.expires_at);
        self.of(&asked.tenant).execute(&insert).await?;
        Ok(())
    }

    /// Notes what became of a request; false when something had become of it before. A decision counts even if the request
    /// was marked as withdrawn or expired before the decision was stored.
    pub async fn approval_ended(
        &self,
        thread: Uuid,
        id: Uuid,
        status: ApprovalStatus,
        by: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<bool> {
        let update = query(
            "UPDATE approval_request SET status = $2, decided_at = $3, decided_by = $4 \
             WHERE id = $1 AND thread_id = $6 \
                AND (status = 'pending' OR (status IN ('withdrawn', 'expired') AND $5 = 1))",
        )
        .binds((id, status, now, by, i64::from(status.is_decision()), thread));
        Ok(self.of_all().execute(&update).await? > 0)
    }

    /// Returns pending requests of all tenants that ran out before a time, oldest first.
    pub async fn approvals_due(
        &self,
        before: DateTime<Utc>,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<ApprovalRequest>> {
        let find = select::<ApprovalRequest>(
            "FROM approval_request WHERE status = 'pending' AND expires_at < $1 \
             ORDER BY expires_at, id LIMIT $2 OFFSET $3",
        );
        Ok(self.of_all().rows(&find.binds((before, limit, offset))).await?)
    }

    pub async fn approvals_pending(
        &self,
        tenant: &str,
        thread: Uuid,
    ) -> Result<Vec<ApprovalRequest>> {
        let find = select::<ApprovalRequest>(
            "FROM approval_request WHERE tenant = $1 AND thread_id = $2 AND status = 'pending'",
        );
        Ok(self.of(tenant).rows(&find.binds((tenant, thread))).await?)
    }

    /// Lists the requests of a tenant, or of one of its threads, newest first.
    pub async fn approvals(
        &self,
        tenant: &str,
        thread: Option<Uuid>,
        limit: Option<u32>,
    ) -> Result<Vec<ApprovalRequest>> {
        let find = select::<ApprovalRequest>(match thread {
            Some(_) => {
                "FROM approval_request WHERE tenant = $1 AND thread_id = $3 \
                 ORDER BY asked_at DESC, id LIMIT $2"
            }
            None => "FROM approval_request WHERE tenant = $1 ORDER BY asked_at DESC, id LIMIT $2",
        });
        let limit = limit.map_or(100, i64::from).clamp(1, PAGE);
        let find = thread.into_iter().fold(find.binds((tenant, limit)), Query::bind);
        Ok(self.of(tenant).rows(&find).await?)
    }
}
