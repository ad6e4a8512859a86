//! Addresses with push notifications of a task.

use chrono::{DateTime, Utc};
use perihelion_database::query;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::{Kept, Result};

impl Kept {
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
