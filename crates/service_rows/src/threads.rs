//! What clients note of threads.

use chrono::{DateTime, Utc};
use perihelion_database::{Row, query};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::Kept;
use crate::error::Error;

/// What is noted of a thread.
#[derive(Clone, Debug)]
pub struct ThreadMeta {
    pub metadata: Json,
    pub config: Json,
    pub updated_at: Option<DateTime<Utc>>,
    /// The threads that it was copied from, each with the last step that it shares; oldest first.
    pub origins: Vec<(Uuid, u64)>,
}

/// The field of the stored configuration that has a copy's origins; clients do not see it.
const ORIGINS: &str = "__origins";

impl Default for ThreadMeta {
    fn default() -> Self {
        Self { metadata: json!({}), config: json!({}), updated_at: None, origins: Vec::new() }
    }
}

impl ThreadMeta {
    /// Reads three columns of a row, from `column` on: metadata, configuration and the time of the change.
    pub(crate) fn read(row: &Row, column: usize) -> Result<Self, Error> {
        let Some(metadata) = row.get(column)? else { return Ok(Self::default()) };
        let mut config: Json = row.get(column + 1)?;
        let origins = config.as_object_mut().and_then(|fields| fields.remove(ORIGINS));
        let origins = origins.and_then(|origins| serde_json::from_value(origins).ok());
        Ok(Self {
            metadata,
            config,
            updated_at: row.get(column + 2)?,
            origins: origins.unwrap_or_default(),
        })
    }

    /// Returns the configuration as it is stored.
    fn stored_config(&self) -> Json {
        let mut config = self.config.clone();
        if !self.origins.is_empty() {
            config[ORIGINS] = json!(self.origins);
        }
        config
    }
}

impl Kept {
    /// Returns what is noted of a thread.
    pub async fn thread_meta(&self, thread: Uuid) -> Result<ThreadMeta, Error> {
        let find = query(
            "SELECT metadata, config, updated_at FROM service_thread WHERE thread_id = $1 AND tenant = $2",
        );
        let find = find.bind(thread).bind(self.tenant.as_str());
        let row = self.of_tenant().fetch_optional(&find).await?;
        row.map_or_else(|| Ok(ThreadMeta::default()), |row| ThreadMeta::read(&row, 0))
    }

    /// Notes of a copy what is noted of its original.
    pub async fn note_copy(
        &self,
        copy: Uuid,
        meta: &ThreadMeta,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        self.note_thread(copy, &meta.metadata, Some(&meta.stored_config()), now).await
    }

    /// Merges metadata and configuration into what is noted of a thread, key by key.
    pub async fn note_thread(
        &self,
        thread: Uuid,
        metadata: &Json,
        config: Option<&Json>,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let merged = self.database.dialect().pick(
            "metadata = json_patch(service_thread.metadata, excluded.metadata), \
             config = json_patch(service_thread.config, excluded.config)",
            "metadata = service_thread.metadata || excluded.metadata, \
             config = service_thread.config || excluded.config",
        );
        let mut note = self.statement(
            "INSERT INTO service_thread (thread_id, tenant, metadata, config, updated_at) VALUES (",
        );
        note.value(thread)
            .text(", ")
            .value(self.tenant.as_str())
            .text(", ")
            .value(metadata.clone())
            .text(", ")
            .value(config.cloned().unwrap_or_else(|| json!({})))
            .text(", ")
            .value(now)
            .text(") ON CONFLICT (thread_id) DO UPDATE SET updated_at = excluded.updated_at, ")
            .text(merged)
            .text(" WHERE service_thread.tenant = excluded.tenant");
        self.of_tenant().execute(&note.build()).await?;
        Ok(())
    }

    /// Makes a thread without a step one of another graph; returns whether it is without one.
    pub async fn give_to_graph(&self, thread: Uuid, graph: &str) -> Result<bool, Error> {
        let give = query(
            "UPDATE thread SET graph = $1 WHERE id = $2 AND tenant = $3 AND head = 0 AND root_id IS NULL",
        );
        let give = give.bind(graph).bind(thread).bind(self.tenant.as_str());
        Ok(self.of_tenant().execute(&give).await? > 0)
    }

    /// Returns the user whose thread it is.
    pub async fn thread_user(&self, thread: Uuid) -> Result<Option<String>, Error> {
        let find = query("SELECT user_id FROM service_thread WHERE thread_id = $1 AND tenant = $2");
        match self.of_tenant().fetch_optional(&find.bind(thread).bind(self.tenant.as_str())).await?
        {
            None => Ok(None),
            Some(row) => Ok(row.get(0)?),
        }
    }

    /// Makes a thread a user's, unless it is one's already; returns whose it is then.
    pub async fn give_thread(
        &self,
        thread: Uuid,
        user: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<String>, Error> {
        let give = query(
            "INSERT INTO service_thread (thread_id, metadata, config, updated_at, user_id, tenant) \
             VALUES ($1, '{}', '{}', $2, $3, $4) \
             ON CONFLICT (thread_id) DO UPDATE SET user_id = COALESCE(service_thread.user_id, excluded.user_id) \
             WHERE service_thread.tenant = excluded.tenant",
        );
        self.of_tenant()
            .execute(&give.bind(thread).bind(now).bind(user).bind(self.tenant.as_str()))
            .await?;
        self.thread_user(thread).await
    }
}
