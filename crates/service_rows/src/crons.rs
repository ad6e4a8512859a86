//! Runs that begin by the clock.
//!
//! The process that claimed a cron advances its next time, and only from the claimed time, so that one of several
//! processes begins its run.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_database::{FromRow as _, query, select, stored_row};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::sql::Statement;
use crate::{Error, Kept, Result};

stored_row! {
    #[derive(Clone, Debug)]
    pub struct Cron {
        pub id: Uuid,
        pub tenant: String,
        pub assistant: Uuid,
        /// `None`: each run has a separate thread.
        pub thread: Option<Uuid> = "thread_id",
        pub schedule: String,
        /// None: UTC.
        pub timezone: Option<String>,
        /// Whether a thread that was made for a run stays.
        pub keeps_thread: bool,
        pub user: String = "user_id",
        /// Its authenticated creator; `None` for crons of earlier versions.
        pub maker: Option<Json>,
        /// Why it stopped.
        pub paused: Option<String>,
        /// The form that clients see.
        pub payload: Json,
        /// The request with which its run is accepted.
        pub work: Json,
        pub metadata: Json,
        pub enabled: bool,
        /// None: never again.
        pub next_at: Option<DateTime<Utc>>,
        pub end_at: Option<DateTime<Utc>>,
        pub created_at: DateTime<Utc>,
        pub updated_at: DateTime<Utc>,
    }
}

#[derive(Clone, Debug, Default)]
pub struct CronFilter {
    pub assistant: Option<Uuid>,
    pub thread: Option<Uuid>,
    pub enabled: Option<bool>,
    pub metadata: Option<Json>,
    pub order: CronOrder,
    pub ascending: bool,
    pub limit: u32,
    pub offset: u32,
}

/// The order of crons; a cron without the value comes last.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
pub enum CronOrder {
    #[default]
    #[serde(rename = "created_at")]
    Created,
    #[serde(rename = "updated_at")]
    Updated,
    #[serde(rename = "cron_id")]
    Id,
    #[serde(rename = "assistant_id")]
    Assistant,
    #[serde(rename = "thread_id")]
    Thread,
    #[serde(rename = "next_run_date")]
    Next,
    #[serde(rename = "end_time")]
    End,
}

impl CronOrder {
    fn column(self) -> &'static str {
        match self {
            Self::Created => "created_at",
            Self::Updated => "updated_at",
            Self::Id => "id",
            Self::Assistant => "assistant",
            Self::Thread => "thread_id",
            Self::Next => "next_at",
            Self::End => "end_at",
        }
    }
}

impl Kept {
    fn opened_cron(&self, read: Cron) -> Result<Cron> {
        let payload = self.opened("cron payload", read.id, read.payload)?;
        let work = self.opened("cron work", read.id, read.work)?;
        Ok(Cron { payload, work, ..read })
    }

    /// Stores a new cron, or the new state of one; returns `false` if it was deleted since.
    pub async fn put_cron(&self, cron: &Cron, is_new: bool) -> Result<bool> {
        let put = if is_new {
            "INSERT INTO service_cron (id, tenant, assistant, thread_id, schedule, timezone, keeps_thread, user_id, \
                payload, work, metadata, enabled, next_at, end_at, created_at, updated_at, maker, paused) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)"
        } else {
            "UPDATE service_cron SET assistant = $3, thread_id = $4, schedule = $5, timezone = $6, \
                keeps_thread = $7, user_id = $8, payload = $9, work = $10, metadata = $11, enabled = $12, \
                next_at = $13, end_at = $14, created_at = $15, updated_at = $16, maker = $17, paused = $18 \
             WHERE id = $1 AND tenant = $2"
        };
        let put = query(put)
            .binds((cron.id, &self.tenant, cron.assistant, cron.thread))
            .binds((&cron.schedule, cron.timezone.clone(), cron.keeps_thread, &cron.user))
            .bind(self.shut_as_written("cron payload", cron.id, &cron.payload)?)
            .bind(self.shut_as_written("cron work", cron.id, &cron.work)?)
            .binds((cron.metadata.clone(), cron.enabled, cron.next_at, cron.end_at))
            .binds((cron.created_at, cron.updated_at, cron.maker.clone(), cron.paused.clone()));
        Ok(self.change(put).await? > 0)
    }

    pub async fn cron(&self, id: Uuid) -> Result<Option<Cron>> {
        let mut find = self.select::<Cron>("service_cron");
        find.text(" AND id = ").value(id);
        let found = self.of_tenant().row(&find.build()).await?;
        found.map(|cron| self.opened_cron(cron)).transpose()
    }

    pub async fn crons(&self, filter: &CronFilter) -> Result<Vec<Cron>> {
        let mut find = self.select::<Cron>("service_cron");
        matching(&mut find, filter);
        let column = filter.order.column();
        let way = if filter.ascending { "ASC" } else { "DESC" };
        find.text(" ORDER BY (").text(column).text(" IS NULL), ").text(column).text(" ").text(way);
        find.text(", id ").text(way).page(filter.limit, filter.offset);
        let crons = self.of_tenant().rows(&find.build()).await?;
        crons.into_iter().map(|cron| self.opened_cron(cron)).collect()
    }

    pub async fn count_crons(&self, filter: &CronFilter) -> Result<u64> {
        let mut find = self.statement("SELECT count(*) FROM service_cron WHERE tenant = ");
        find.value(&self.tenant);
        matching(&mut find, filter);
        self.counted(find).await
    }

    pub async fn delete_cron(&self, id: Uuid) -> Result<bool> {
        let delete = query("DELETE FROM service_cron WHERE id = $1 AND tenant = $2");
        Ok(self.change(delete.binds((id, &self.tenant))).await? > 0)
    }

    /// Returns due crons of all tenants that no process has claimed.
    pub async fn due_crons(
        &self,
        now: DateTime<Utc>,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<Result<Cron, Error>>> {
        let due = select::<Cron>(
            "FROM service_cron WHERE enabled AND next_at <= $1 \
             AND (claimed_until IS NULL OR claimed_until <= $1) ORDER BY next_at, id LIMIT $2 OFFSET $3",
        );
        let rows = self.of_all_tenants().fetch_all(&due.binds((now, limit, offset))).await?;
        let read = |row| self.opened_cron(Cron::from_row(row)?);
        Ok(rows.iter().map(read).collect())
    }

    /// Claims a cron's next time for a while, unless another process did or it was changed.
    pub async fn claim_cron(
        &self,
        cron: &Cron,
        owner: &str,
        now: DateTime<Utc>,
        lasting: TimeDelta,
    ) -> Result<bool> {
        let claim = query(
            "UPDATE service_cron SET claimed_by = $1, claimed_until = $2 WHERE id = $3 AND enabled \
             AND next_at = $4 AND (claimed_until IS NULL OR claimed_until <= $5) AND tenant = $6",
        );
        let claim = claim.binds((owner, now + lasting, cron.id, cron.next_at, now, &cron.tenant));
        Ok(self.database.of_tenant(&cron.tenant).execute(&claim).await? == 1)
    }

    pub async fn pause_cron(&self, cron: &Cron, owner: &str, why: &str) -> Result<()> {
        let pause = query(
            "UPDATE service_cron SET enabled = false, next_at = NULL, paused = $1, claimed_by = NULL, \
                claimed_until = NULL WHERE id = $2 AND claimed_by = $3 AND tenant = $4",
        );
        let pause = pause.binds((why, cron.id, owner, &cron.tenant));
        self.database.of_tenant(&cron.tenant).execute(&pause).await?;
        Ok(())
    }

    pub async fn move_cron(
        &self,
        cron: &Cron,
        owner: &str,
        next: Option<DateTime<Utc>>,
    ) -> Result<bool> {
        let on = query(
            "UPDATE service_cron SET next_at = $1, claimed_by = NULL, claimed_until = NULL \
             WHERE id = $2 AND claimed_by = $3 AND next_at = $4 AND tenant = $5",
        );
        let on = on.binds((next, cron.id, owner, cron.next_at, &cron.tenant));
        Ok(self.database.of_tenant(&cron.tenant).execute(&on).await? == 1)
    }
}

fn matching(find: &mut Statement, filter: &CronFilter) {
    find.given(" AND assistant = ", filter.assistant);
    find.given(" AND thread_id = ", filter.thread);
    find.given(" AND enabled = ", filter.enabled);
    if let Some(metadata) = &filter.metadata {
        find.text(" AND ").contains("metadata", metadata);
    }
}
