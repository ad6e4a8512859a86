//! What is sent to an address when a run has ended: kept before the run, sent after it, until it was taken.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_database::{Row, query};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::{Error, Kept};

const SELECT: &str = "SELECT id, tenant, run_id, kind, url, headers, payload, attempts, under_way";

/// Something to be sent.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The same in every attempt: by it a receiver knows one that comes twice.
    pub id: Uuid,
    pub tenant: String,
    pub run: Uuid,
    /// Whose form it has: `webhook`, `a2a`.
    pub kind: String,
    pub url: String,
    pub headers: Json,
    /// None: not made yet.
    pub payload: Option<Json>,
    /// How often it was sent.
    pub attempts: u32,
    /// Whether it tells that its run continues, and not that it has ended.
    pub is_under_way: bool,
}

/// Where the end of a run is to be said.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDelivery {
    pub kind: &'static str,
    pub url: String,
    pub headers: Json,
    /// Whether it tells that the run continues, and not that it has ended.
    pub is_under_way: bool,
}

impl NewDelivery {
    /// Makes the call of a webhook.
    pub fn webhook(url: String) -> Self {
        let headers = Json::Object(Default::default());
        Self { kind: "webhook", url, headers, is_under_way: false }
    }
}

impl Delivery {
    fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.get(0)?,
            tenant: row.get(1)?,
            run: row.get(2)?,
            kind: row.get(3)?,
            url: row.get(4)?,
            headers: row.get(5)?,
            payload: row.get(6)?,
            attempts: row.get::<i64>(7)?.try_into().unwrap_or(u32::MAX),
            is_under_way: row.get(8)?,
        })
    }
}

impl Kept {
    fn read_delivery(&self, row: &Row) -> Result<Delivery, Error> {
        let read = Delivery::read(row)?;
        let payload = match read.payload {
            Some(payload) => Some(self.opened("delivery payload", read.id, payload)?),
            None => None,
        };
        let url = self.opened_text("delivery url", read.id, read.url)?;
        let headers = self.opened("delivery headers", read.id, read.headers)?;
        Ok(Delivery { url, headers, payload, ..read })
    }

    /// Notes that something is to be sent when a run has ended.
    pub async fn add_delivery(
        &self,
        run: Uuid,
        new: &NewDelivery,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let add = query(
            "INSERT INTO service_delivery (id, tenant, run_id, kind, url, headers, next_at, created_at, \
                under_way) VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8)",
        );
        let id = Uuid::now_v7();
        let add = add
            .bind(id)
            .bind(self.tenant.as_str())
            .bind(run)
            .bind(new.kind)
            .bind(self.shut_text("delivery url", id, &new.url)?)
            .bind(self.shut("delivery headers", id, &new.headers)?)
            .bind(now)
            .bind(new.is_under_way);
        self.of_tenant().execute(&add).await?;
        Ok(())
    }

    /// Returns what of all tenants but those in `without` is to be sent now: its run has ended, and nobody is sending it.
    pub async fn due_deliveries(
        &self,
        now: DateTime<Utc>,
        without: &[String],
        limit: u32,
    ) -> Result<Vec<Delivery>, Error> {
        let mut find = self.statement(SELECT);
        find.text(" FROM service_delivery d WHERE ended_at IS NULL AND next_at <= ")
            .value(now)
            .text(" AND (claimed_until IS NULL OR claimed_until <= ")
            .value(now)
            .text(
                ") AND (payload IS NOT NULL OR EXISTS (SELECT 1 FROM service_run r WHERE r.id = d.run_id \
                 AND r.status <> 'pending' AND (d.under_way OR r.status <> 'running')))",
            );
        for tenant in without {
            find.text(" AND tenant <> ").value(tenant.as_str());
        }
        find.text(" ORDER BY next_at LIMIT ").value(limit);
        self.of_all_tenants()
            .fetch_all(&find.build())
            .await?
            .iter()
            .map(|row| self.read_delivery(row))
            .collect()
    }

    /// Claims a delivery for one attempt, unless another process did.
    pub async fn claim_delivery(
        &self,
        id: Uuid,
        now: DateTime<Utc>,
        lasting: TimeDelta,
    ) -> Result<bool, Error> {
        let claim = query(
            "UPDATE service_delivery SET claimed_until = $1, attempts = attempts + 1 \
             WHERE id = $2 AND ended_at IS NULL AND (claimed_until IS NULL OR claimed_until <= $3) \
             AND tenant = $4",
        );
        let claim = claim.bind(now + lasting).bind(id).bind(now).bind(self.tenant.as_str());
        Ok(self.of_tenant().execute(&claim).await? == 1)
    }

    /// Keeps what is sent, for further attempts: its fields stay in their order, and its numbers as they are written.
    pub async fn keep_payload(&self, id: Uuid, payload: &Json) -> Result<(), Error> {
        let keep = query(self.database.dialect().pick(
            "UPDATE service_delivery SET payload = $1 WHERE id = $2 AND tenant = $3",
            "UPDATE service_delivery SET payload = $1::text::json WHERE id = $2 AND tenant = $3",
        ));
        let payload = self.shut("delivery payload", id, payload)?.to_string();
        let keep = keep.bind(payload).bind(id);
        self.of_tenant().execute(&keep.bind(self.tenant.as_str())).await?;
        Ok(())
    }

    /// Forgets a delivery that was taken.
    pub async fn delivered(&self, id: Uuid) -> Result<(), Error> {
        let delete = query("DELETE FROM service_delivery WHERE id = $1 AND tenant = $2");
        self.of_tenant().execute(&delete.bind(id).bind(self.tenant.as_str())).await?;
        Ok(())
    }

    /// Notes why a delivery was not taken, and when it is tried again; `None`: it is given up.
    pub async fn not_delivered(
        &self,
        id: Uuid,
        problem: &str,
        again_at: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let note = query(
            "UPDATE service_delivery SET problem = $1, claimed_until = NULL, next_at = $2, ended_at = $3 \
             WHERE id = $4 AND tenant = $5",
        );
        let ended = again_at.is_none().then_some(now);
        let note = note.bind(problem).bind(again_at.unwrap_or(now)).bind(ended).bind(id);
        let note = note.bind(self.tenant.as_str());
        self.of_tenant().execute(&note).await?;
        Ok(())
    }

    /// Forgets what of all tenants was given up, or never became due, before a time.
    pub async fn forget_deliveries(&self, before: DateTime<Utc>) -> Result<(), Error> {
        let forget = query(
            "DELETE FROM service_delivery WHERE ended_at < $1 OR (created_at < $1 AND payload IS NULL \
             AND NOT EXISTS (SELECT 1 FROM service_run r WHERE r.id = service_delivery.run_id))",
        );
        self.of_all_tenants().execute(&forget.bind(before)).await?;
        Ok(())
    }
}
