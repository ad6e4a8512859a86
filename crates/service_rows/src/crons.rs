//! Runs that begin by the clock.
//!
//! A cron's next time is moved on by the one who claimed it, and only from the time that was claimed, so that of processes
//! that find it due at once one begins its run.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_database::{Row, query};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::sql::Statement;
use crate::{Error, Kept};

const SELECT: &str = "SELECT id, tenant, assistant, thread_id, schedule, timezone, keeps_thread, user_id, payload, work, \
    metadata, enabled, next_at, end_at, created_at, updated_at, maker, paused";

/// A cron.
#[derive(Clone, Debug)]
pub struct Cron {
    pub id: Uuid,
    pub tenant: String,
    pub assistant: Uuid,
    /// None: each run has a thread of its own.
    pub thread: Option<Uuid>,
    pub schedule: String,
    /// None: UTC.
    pub timezone: Option<String>,
    /// Whether a thread that was made for a run stays.
    pub keeps_thread: bool,
    /// Who made it.
    pub user: String,
    /// Who made it, as they proved it; none of those of earlier versions.
    pub maker: Option<Json>,
    /// Why it does not run any more.
    pub paused: Option<String>,
    /// As its client is shown it.
    pub payload: Json,
    /// What a run of it is accepted with.
    pub work: Json,
    pub metadata: Json,
    pub enabled: bool,
    /// None: never again.
    pub next_at: Option<DateTime<Utc>>,
    pub end_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Which crons are listed.
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

/// By what crons are ordered; those that lack it come last.
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

impl Cron {
    fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.get(0)?,
            tenant: row.get(1)?,
            assistant: row.get(2)?,
            thread: row.get(3)?,
            schedule: row.get(4)?,
            timezone: row.get(5)?,
            keeps_thread: row.get(6)?,
            user: row.get(7)?,
            payload: row.get(8)?,
            work: row.get(9)?,
            metadata: row.get(10)?,
            enabled: row.get(11)?,
            next_at: row.get(12)?,
            end_at: row.get(13)?,
            created_at: row.get(14)?,
            updated_at: row.get(15)?,
            maker: row.get(16)?,
            paused: row.get(17)?,
        })
    }
}

impl Kept {
    fn read_cron(&self, row: &Row) -> Result<Cron, Error> {
        let read = Cron::read(row)?;
        let payload = self.opened("cron payload", read.id, read.payload)?;
        let work = self.opened("cron work", read.id, read.work)?;
        Ok(Cron { payload, work, ..read })
    }

    /// Keeps a cron, in place of an earlier state of it.
    pub async fn put_cron(&self, cron: &Cron) -> Result<(), Error> {
        let put = query(
            "INSERT INTO service_cron (id, tenant, assistant, thread_id, schedule, timezone, keeps_thread, user_id, \
                payload, work, metadata, enabled, next_at, end_at, created_at, updated_at, maker, paused) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) \
             ON CONFLICT (id) DO UPDATE SET assistant = excluded.assistant, schedule = excluded.schedule, \
                timezone = excluded.timezone, keeps_thread = excluded.keeps_thread, payload = excluded.payload, \
                work = excluded.work, metadata = excluded.metadata, enabled = excluded.enabled, \
                next_at = excluded.next_at, end_at = excluded.end_at, updated_at = excluded.updated_at, \
                user_id = excluded.user_id, maker = excluded.maker, paused = excluded.paused \
             WHERE service_cron.tenant = excluded.tenant",
        );
        let put = put
            .bind(cron.id)
            .bind(self.tenant.as_str())
            .bind(cron.assistant)
            .bind(cron.thread)
            .bind(cron.schedule.as_str())
            .bind(cron.timezone.clone())
            .bind(cron.keeps_thread)
            .bind(cron.user.as_str())
            .bind(self.shut("cron payload", cron.id, &cron.payload)?)
            .bind(self.shut("cron work", cron.id, &cron.work)?)
            .bind(cron.metadata.clone())
            .bind(cron.enabled)
            .bind(cron.next_at)
            .bind(cron.end_at)
            .bind(cron.created_at)
            .bind(cron.updated_at)
            .bind(cron.maker.clone())
            .bind(cron.paused.clone());
        self.of_tenant().execute(&put).await?;
        Ok(())
    }

    /// Returns a cron.
    pub async fn cron(&self, id: Uuid) -> Result<Option<Cron>, Error> {
        let mut find = self.statement(SELECT);
        find.text(" FROM service_cron WHERE id = ").value(id);
        find.text(" AND tenant = ").value(self.tenant.as_str());
        let found = self.of_tenant().fetch_optional(&find.build()).await?;
        found.as_ref().map(|row| self.read_cron(row)).transpose()
    }

    /// Lists crons in the order of the filter.
    pub async fn crons(&self, filter: &CronFilter) -> Result<Vec<Cron>, Error> {
        let mut find = self.statement(SELECT);
        self.matching(&mut find, filter);
        let column = filter.order.column();
        let way = if filter.ascending { "ASC" } else { "DESC" };
        find.text(" ORDER BY (").text(column).text(" IS NULL), ").text(column).text(" ").text(way);
        find.text(", id ").text(way).page(filter.limit, filter.offset);
        self.of_tenant()
            .fetch_all(&find.build())
            .await?
            .iter()
            .map(|row| self.read_cron(row))
            .collect()
    }

    /// Counts crons.
    pub async fn count_crons(&self, filter: &CronFilter) -> Result<u64, Error> {
        let mut find = self.statement("SELECT count(*)");
        self.matching(&mut find, filter);
        let rows = self.of_tenant().fetch_all(&find.build()).await?;
        let count = rows.first().map(|row| row.get::<i64>(0)).transpose()?;
        Ok(count.unwrap_or_default().unsigned_abs())
    }

    fn matching(&self, find: &mut Statement, filter: &CronFilter) {
        find.text(" FROM service_cron WHERE tenant = ").value(self.tenant.as_str());
        if let Some(assistant) = filter.assistant {
            find.text(" AND assistant = ").value(assistant);
        }
        if let Some(thread) = filter.thread {
            find.text(" AND thread_id = ").value(thread);
        }
        if let Some(enabled) = filter.enabled {
            find.text(" AND enabled = ").value(enabled);
        }
        if let Some(metadata) = &filter.metadata {
            find.text(" AND ").contains("metadata", metadata);
        }
    }

    /// Deletes a cron.
    pub async fn delete_cron(&self, id: Uuid) -> Result<bool, Error> {
        let delete = query("DELETE FROM service_cron WHERE id = $1 AND tenant = $2");
        Ok(self.of_tenant().execute(&delete.bind(id).bind(self.tenant.as_str())).await? > 0)
    }

    /// Deletes the crons of an assistant.
    pub async fn delete_crons_of(&self, assistant: Uuid) -> Result<(), Error> {
        let delete = query("DELETE FROM service_cron WHERE assistant = $1 AND tenant = $2");
        self.of_tenant().execute(&delete.bind(assistant).bind(self.tenant.as_str())).await?;
        Ok(())
    }

    /// Returns crons of all tenants that are due, and that nobody has claimed.
    pub async fn due_crons(
        &self,
        now: DateTime<Utc>,
        limit: u32,
    ) -> Result<Vec<Result<Cron, Error>>, Error> {
        let mut find = self.statement(SELECT);
        find.text(" FROM service_cron WHERE enabled AND next_at <= ").value(now);
        find.text(" AND (claimed_until IS NULL OR claimed_until <= ").value(now);
        find.text(") ORDER BY next_at LIMIT ").value(limit);
        let rows = self.of_all_tenants().fetch_all(&find.build()).await?;
        Ok(rows.iter().map(|row| self.read_cron(row)).collect())
    }

    /// Claims a cron's next time for a while, unless another process did or it was changed.
    pub async fn claim_cron(
        &self,
        cron: &Cron,
        owner: &str,
        now: DateTime<Utc>,
        lasting: TimeDelta,
    ) -> Result<bool, Error> {
        let claim = query(
            "UPDATE service_cron SET claimed_by = $1, claimed_until = $2 WHERE id = $3 AND enabled \
             AND next_at = $4 AND (claimed_until IS NULL OR claimed_until <= $5) AND tenant = $6",
        );
        let claim =
            claim.bind(owner).bind(now + lasting).bind(cron.id).bind(cron.next_at).bind(now);
        let claim = claim.bind(cron.tenant.as_str());
        Ok(self.database.of_tenant(&cron.tenant).execute(&claim).await? == 1)
    }

    /// Has a claimed cron run no more, and says why.
    pub async fn pause_cron(&self, cron: &Cron, owner: &str, why: &str) -> Result<(), Error> {
        let pause = query(
            "UPDATE service_cron SET enabled = false, next_at = NULL, paused = $1, claimed_by = NULL, \
                claimed_until = NULL WHERE id = $2 AND claimed_by = $3 AND tenant = $4",
        );
        let pause = pause.bind(why).bind(cron.id).bind(owner).bind(cron.tenant.as_str());
        self.database.of_tenant(&cron.tenant).execute(&pause).await?;
        Ok(())
    }

    /// Moves a claimed cron on to its next time.
    pub async fn move_cron(
        &self,
        cron: &Cron,
        owner: &str,
        next: Option<DateTime<Utc>>,
    ) -> Result<bool, Error> {
        let on = query(
            "UPDATE service_cron SET next_at = $1, claimed_by = NULL, claimed_until = NULL \
             WHERE id = $2 AND claimed_by = $3 AND next_at = $4 AND tenant = $5",
        );
        let on = on.bind(next).bind(cron.id).bind(owner).bind(cron.next_at);
        let on = on.bind(cron.tenant.as_str());
        Ok(self.database.of_tenant(&cron.tenant).execute(&on).await? == 1)
    }
}
