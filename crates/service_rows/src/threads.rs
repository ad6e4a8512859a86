//! What clients note of threads.

use chrono::{DateTime, Utc};
use perihelion_database::query;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::Kept;
use crate::error::Error;
use crate::sql::Statement;

/// What is noted of a thread.
#[derive(Clone, Debug)]
pub struct ThreadMeta {
    pub metadata: Json,
    pub config: Json,
    pub updated_at: Option<DateTime<Utc>>,
}

impl Default for ThreadMeta {
    fn default() -> Self {
        Self { metadata: json!({}), config: json!({}), updated_at: None }
    }
}

impl Kept {
    /// Returns what is noted of a thread.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn thread_meta(&self, thread: Uuid) -> Result<ThreadMeta, Error> {
        let find = query(
            "SELECT metadata, config, updated_at FROM service_thread WHERE thread_id = $1 AND tenant = $2",
        );
        match self.of_tenant().fetch_optional(&find.bind(thread).bind(self.tenant.as_str())).await?
        {
            None => Ok(ThreadMeta::default()),
            Some(row) => Ok(ThreadMeta {
                metadata: row.get(0)?,
                config: row.get(1)?,
                updated_at: Some(row.get(2)?),
            }),
        }
    }

    /// Merges metadata and configuration into what is noted of a thread, key by key.
    ///
    /// # Errors
    /// [`Error`].
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
        let mut note = Statement::new(
            self.database.dialect(),
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

    /// Returns the user whose thread it is.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn thread_user(&self, thread: Uuid) -> Result<Option<String>, Error> {
        let find = query("SELECT user_id FROM service_thread WHERE thread_id = $1 AND tenant = $2");
        match self.of_tenant().fetch_optional(&find.bind(thread).bind(self.tenant.as_str())).await?
        {
            None => Ok(None),
            Some(row) => Ok(row.get(0)?),
        }
    }

    /// Makes a thread a user's, unless it is one's already; returns whose it is then.
    ///
    /// # Errors
    /// [`Error`].
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
