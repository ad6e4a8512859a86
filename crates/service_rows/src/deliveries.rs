//! Messages to an address at the end of a run: stored before the run, sent after it, until they are accepted.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_database::{StoredRow as _, query, stored_row};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::{Kept, Result};

stored_row! {
    #[derive(Clone, Debug)]
    pub struct Delivery {
        /// The same in every attempt, so that a receiver can recognize a duplicate.
        pub id: Uuid,
        pub tenant: String,
        pub run: Uuid = "run_id",
        /// The form of the message: `webhook`, `a2a`.
        pub kind: String,
        pub url: String,
        pub headers: Json,
        /// None: not made yet.
        pub payload: Option<Json>,
        pub attempts: u32,
        /// Whether it reports that its run continues, and not that it has ended.
        pub is_under_way: bool = "under_way",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct NewDelivery {
    pub kind: &'static str,
    pub url: String,
    pub headers: Json,
    /// Whether it reports that the run continues, and not that it has ended.
    pub is_under_way: bool,
}

impl NewDelivery {
    pub fn webhook(url: String) -> Self {
        let headers = Json::Object(Default::default());
        Self { kind: "webhook", url, headers, is_under_way: false }
    }
}

impl Kept {
    /// Decrypts a delivery that was found due.
    ///
    /// # Errors
    /// [`Error::Sealed`](crate::Error::Sealed) without the key that it was encrypted with.
    pub fn opened_delivery(&self, found: Delivery) -> Result<Delivery> {
        let open = |payload| self.opened("delivery payload", found.id, payload);
        let payload = found.payload.map(open).transpose()?;
        let url = self.opened_text("delivery url", found.id, found.url)?;
        let headers = self.opened("delivery headers", found.id, found.headers)?;
        Ok(Delivery { url, headers, payload, ..found })
    }

    /// Stores a message for the end of a run, once: a run whose storing is repeated has the same messages.
    pub async fn add_delivery(
        &self,
        run: Uuid,
        new: &NewDelivery,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let add = query(
            "INSERT INTO service_delivery (id, tenant, run_id, kind, url, headers, next_at, created_at, \
                under_way) VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8) ON CONFLICT (id) DO NOTHING",
        );
        let what = json!([new.kind, new.url, new.headers, new.is_under_way]);
        let id = Uuid::new_v5(&run, what.to_string().as_bytes());
        let add = add
            .binds((id, &self.tenant, run, new.kind))
            .bind(self.shut_text("delivery url", id, &new.url)?)
            .bind(self.shut("delivery headers", id, &new.headers)?)
            .binds((now, new.is_under_way));
        self.change(add).await.map(drop)
    }

    /// Returns due messages of all tenants except those in `without`, encrypted as they are stored: the run has ended, and no
    /// process is sending the message.
    pub async fn due_deliveries(
        &self,
        now: DateTime<Utc>,
        without: &[String],
        limit: u32,
    ) -> Result<Vec<Delivery>> {
        let mut find = self.statement(&format!("SELECT {}", Delivery::COLUMNS));
        find.add(
            " FROM service_delivery d WHERE ended_at IS NULL AND next_at <= ? \
             AND (claimed_until IS NULL OR claimed_until <= ?) AND (payload IS NOT NULL OR EXISTS \
                (SELECT 1 FROM service_run r WHERE r.id = d.run_id \
                 AND r.status <> 'pending' AND (d.under_way OR r.status <> 'running')))",
            (now, now),
        );
        for tenant in without {
            find.text(" AND tenant <> ").value(tenant);
        }
        find.text(" ORDER BY next_at LIMIT ").value(limit);
        Ok(self.of_all_tenants().rows(&find.build()).await?)
    }

    /// Claims a delivery for one attempt, unless another process did.
    pub async fn claim_delivery(
        &self,
        id: Uuid,
        now: DateTime<Utc>,
        lasting: TimeDelta,
    ) -> Result<bool> {
        let claim = query(
            "UPDATE service_delivery SET claimed_until = $1, attempts = attempts + 1 \
             WHERE id = $2 AND ended_at IS NULL AND (claimed_until IS NULL OR claimed_until <= $3) \
             AND tenant = $4",
        );
        Ok(self.change(claim.binds((now + lasting, id, now, &self.tenant))).await? == 1)
    }

    /// Stores the message's content for further attempts: its fields keep their order, and its numbers their form.
    pub async fn keep_payload(&self, id: Uuid, payload: &Json) -> Result<()> {
        let keep = query("UPDATE service_delivery SET payload = $1 WHERE id = $2 AND tenant = $3");
        let payload = self.shut_as_written("delivery payload", id, payload)?;
        self.change(keep.binds((payload, id, &self.tenant))).await.map(drop)
    }

    pub async fn delivered(&self, id: Uuid) -> Result<()> {
        let delete = query("DELETE FROM service_delivery WHERE id = $1 AND tenant = $2");
        self.change(delete.binds((id, &self.tenant))).await.map(drop)
    }

    /// Notes why a delivery was not taken, and when it is tried again; `None`: it is given up.
    pub async fn not_delivered(
        &self,
        id: Uuid,
        problem: &str,
        again_at: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let note = query(
            "UPDATE service_delivery SET problem = $1, claimed_until = NULL, next_at = $2, ended_at = $3 \
             WHERE id = $4 AND tenant = $5",
        );
        let ended = again_at.is_none().then_some(now);
        let note = note.binds((problem, again_at.unwrap_or(now), ended, id, &self.tenant));
        self.change(note).await.map(drop)
    }

    /// Forgets what of all tenants was given up, or never became due, before a time.
    pub async fn forget_deliveries(&self, before: DateTime<Utc>) -> Result<()> {
        let forget = query(
            "DELETE FROM service_delivery WHERE ended_at < $1 OR (created_at < $1 AND payload IS NULL \
             AND NOT EXISTS (SELECT 1 FROM service_run r WHERE r.id = service_delivery.run_id))",
        );
        self.change_of_all(forget.bind(before)).await.map(drop)
    }

    /// Keeps an address of a task, in place of an earlier one of its name.
    pub async fn put_push(
        &self,
        task: Uuid,
        id: &str,
        config: &Json,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let put = query(
            "INSERT INTO service_push (tenant, task_id, id, config, created_at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (tenant, task_id, id) DO UPDATE SET config = excluded.config",
        );
        let config = self.shut("push", task, config)?;
        self.change(put.binds((&self.tenant, task, id, config, now))).await.map(drop)
    }

    /// Lists the addresses of a task, oldest first.
    pub async fn pushes(&self, task: Uuid) -> Result<Vec<(String, Json)>> {
        let find = query(
            "SELECT id, config FROM service_push WHERE tenant = $1 AND task_id = $2 ORDER BY created_at, id",
        );
        let rows: Vec<(String, Json)> =
            self.of_tenant().rows(&find.binds((&self.tenant, task))).await?;
        let open = |(id, config)| Ok((id, self.opened("push", task, config)?));
        rows.into_iter().map(open).collect()
    }

    pub async fn delete_push(&self, task: Uuid, id: &str) -> Result<bool> {
        let delete =
            query("DELETE FROM service_push WHERE tenant = $1 AND task_id = $2 AND id = $3");
        Ok(self.change(delete.binds((&self.tenant, task, id))).await? > 0)
    }
}
