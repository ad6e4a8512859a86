//! The clients' metadata of threads.

use chrono::{DateTime, Utc};
use perihelion_database::{Dialect, Row, query};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::Kept;
use crate::error::Result;

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
    pub(crate) fn read(row: &Row, column: usize) -> Result<Self> {
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
}

impl Kept {
    pub async fn thread_meta(&self, thread: Uuid) -> Result<ThreadMeta> {
        let find = query(
            "SELECT metadata, config, updated_at FROM service_thread WHERE thread_id = $1 AND tenant = $2",
        );
        let row = self.of_tenant().fetch_optional(&find.binds((thread, &self.tenant))).await?;
        row.map_or_else(|| Ok(ThreadMeta::default()), |row| ThreadMeta::read(&row, 0))
    }

    /// Returns the threads whose metadata has a field, with their metadata, most recently changed first.
    pub async fn threads_with(&self, field: &str) -> Result<Vec<(Uuid, Json)>> {
        let find = query(
            "SELECT thread_id, metadata FROM service_thread WHERE tenant = $1 AND metadata -> $2 IS NOT NULL \
             ORDER BY updated_at DESC",
        );
        Ok(self.of_tenant().rows(&find.binds((&self.tenant, field))).await?)
    }

    pub async fn note_copy(&self, copy: Uuid, meta: &ThreadMeta, now: DateTime<Utc>) -> Result<()> {
        let mut config = meta.config.clone();
        config[ORIGINS] = json!(meta.origins);
        self.note_thread(copy, &meta.metadata, Some(&config), now).await
    }

    /// Merges metadata and configuration into those of a thread, key by key.
    pub async fn note_thread(
        &self,
        thread: Uuid,
        metadata: &Json,
        config: Option<&Json>,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let [metadata_of_both, config_of_both] = ["metadata", "config"].map(|name| {
            let [there, new] = [format!("service_thread.{name}"), format!("excluded.{name}")];
            match self.database.dialect() {
                Dialect::Postgres => format!("{there} || {new}"),
                Dialect::Sqlite => format!(
                    "(SELECT json_group_object(key, json(value)) FROM \
                     (SELECT t.key, {there} -> t.fullkey AS value FROM json_each({there}) t \
                     WHERE NOT EXISTS (SELECT 1 FROM json_each({new}) n WHERE n.key = t.key) \
                     UNION ALL SELECT n.key, {new} -> n.fullkey FROM json_each({new}) n))"
                ),
            }
        });
        let config = config.cloned().unwrap_or_else(|| json!({}));
        let mut note = self.statement(
            "INSERT INTO service_thread (thread_id, tenant, metadata, config, updated_at)",
        );
        note.add(" VALUES (?, ?, ?, ?, ?)", (thread, &self.tenant, metadata.clone(), config, now));
        note.text(" ON CONFLICT (thread_id) DO UPDATE SET updated_at = excluded.updated_at, ");
        note.text("metadata = ").text(&metadata_of_both).text(", config = ").text(&config_of_both);
        note.text(" WHERE service_thread.tenant = excluded.tenant");
        self.change(note.build().repeatable()).await.map(drop)
    }

    /// Makes a thread of at most so many steps one of another graph; returns whether it has no more.
    pub async fn give_to_graph(&self, thread: Uuid, graph: &str, most: i64) -> Result<bool> {
        let give = query(
            "UPDATE thread SET graph = $1 WHERE id = $2 AND tenant = $3 AND head <= $4 AND root_id IS NULL",
        );
        Ok(self.change(give.binds((graph, thread, &self.tenant, most))).await? > 0)
    }

    /// Makes a thread a user's, unless it is one's already; returns whose it is then.
    pub async fn give_thread(
        &self,
        thread: Uuid,
        user: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<String>> {
        let give = query(
            "INSERT INTO service_thread (thread_id, metadata, config, updated_at, user_id, tenant) \
             VALUES ($1, '{}', '{}', $2, $3, $4) \
             ON CONFLICT (thread_id) DO UPDATE SET user_id = COALESCE(service_thread.user_id, excluded.user_id) \
             WHERE service_thread.tenant = excluded.tenant RETURNING user_id",
        );
        let give = give.binds((thread, now, user, &self.tenant)).repeatable();
        let given = self.of_tenant().execute_returning(&give).await?;
        Ok(given.map(|row| row.get(0)).transpose()?.flatten())
    }
}
