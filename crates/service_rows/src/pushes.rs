//! Addresses that hear of a task.

use chrono::{DateTime, Utc};
use perihelion_database::query;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::{Error, Kept};

impl Kept {
    /// Keeps an address of a task, in place of an earlier one of its name.
    pub async fn put_push(
        &self,
        task: Uuid,
        id: &str,
        config: &Json,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let put = query(
            "INSERT INTO service_push (tenant, task_id, id, config, created_at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (tenant, task_id, id) DO UPDATE SET config = excluded.config",
        );
        let put = put
            .bind(self.tenant.as_str())
            .bind(task)
            .bind(id)
            .bind(self.shut("push", task, config)?)
            .bind(now);
        self.of_tenant().execute(&put).await?;
        Ok(())
    }

    /// Lists the addresses of a task, oldest first.
    pub async fn pushes(&self, task: Uuid) -> Result<Vec<(String, Json)>, Error> {
        let find = query(
            "SELECT id, config FROM service_push WHERE tenant = $1 AND task_id = $2 ORDER BY created_at, id",
        );
        let rows = self.of_tenant().fetch_all(&find.bind(self.tenant.as_str()).bind(task)).await?;
        rows.iter().map(|row| Ok((row.get(0)?, self.opened("push", task, row.get(1)?)?))).collect()
    }

    /// Deletes an address of a task.
    pub async fn delete_push(&self, task: Uuid, id: &str) -> Result<bool, Error> {
        let delete =
            query("DELETE FROM service_push WHERE tenant = $1 AND task_id = $2 AND id = $3");
        let delete = delete.bind(self.tenant.as_str()).bind(task).bind(id);
        Ok(self.of_tenant().execute(&delete).await? > 0)
    }
}
