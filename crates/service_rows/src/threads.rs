//! What clients note of threads, and finding threads by it.

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

/// By what threads are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadOrder {
    Id,
    Created,
    #[default]
    Updated,
    Status,
}

/// Which threads are listed.
#[derive(Clone, Debug)]
pub struct ThreadFilter {
    /// Graphs whose threads are shown.
    pub graphs: Vec<String>,
    pub ids: Vec<Uuid>,
    /// What their metadata must have.
    pub metadata: Json,
    /// How they stand, in the engine's words; `failed` ones whose run was stopped are `stopped` here.
    pub statuses: Vec<String>,
    pub order: ThreadOrder,
    pub ascending: bool,
    pub limit: u32,
    pub offset: u32,
}

/// A thread that was found, with what is noted of it.
#[derive(Clone, Debug)]
pub struct Listed {
    pub id: Uuid,
    pub meta: ThreadMeta,
}

/// How a thread stands, as an expression: one whose last run was stopped is distinguished from one that failed.
const STATUS: &str = "CASE WHEN t.status = 'failed' AND EXISTS (SELECT 1 FROM run r WHERE r.thread_id = t.id \
    AND r.number = t.runs AND r.status <> 'failed') THEN 'stopped' ELSE t.status END";

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

    /// Lists threads, and says how many there are in all.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn threads(&self, filter: &ThreadFilter) -> Result<(Vec<Listed>, u64), Error> {
        let mut find = Statement::new(
            self.database.dialect(),
            "SELECT t.id, m.metadata, m.config, m.updated_at FROM thread t LEFT JOIN service_thread m \
             ON m.thread_id = t.id WHERE ",
        );
        self.conditions(&mut find, filter);
        find.text(" ORDER BY ").text(match filter.order {
            ThreadOrder::Id => "t.id",
            ThreadOrder::Created => "t.created_at",
            ThreadOrder::Updated => "t.updated_at",
            ThreadOrder::Status => "t.status",
        });
        find.text(if filter.ascending { " ASC, t.id" } else { " DESC, t.id DESC" });
        find.page(filter.limit, filter.offset);
        let rows = self.of_tenant().fetch_all(&find.build()).await?;
        let listed: Result<Vec<Listed>, Error> = rows
            .iter()
            .map(|row| {
                let noted: Option<Json> = row.get(1)?;
                let meta = match noted {
                    None => ThreadMeta::default(),
                    Some(metadata) => {
                        ThreadMeta { metadata, config: row.get(2)?, updated_at: row.get(3)? }
                    }
                };
                Ok(Listed { id: row.get(0)?, meta })
            })
            .collect();
        let listed = listed?;
        let is_all = filter.offset == 0 && (listed.len() as u64) < u64::from(filter.limit);
        let total = if is_all { listed.len() as u64 } else { self.count_threads(filter).await? };
        Ok((listed, total))
    }

    /// Counts threads.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn count_threads(&self, filter: &ThreadFilter) -> Result<u64, Error> {
        let mut find = Statement::new(
            self.database.dialect(),
            "SELECT count(*) FROM thread t LEFT JOIN service_thread m ON m.thread_id = t.id WHERE ",
        );
        self.conditions(&mut find, filter);
        let row = self.of_tenant().fetch_optional(&find.build()).await?;
        Ok(row.map(|row| row.get::<i64>(0)).transpose()?.unwrap_or_default().unsigned_abs())
    }

    fn conditions(&self, find: &mut Statement, filter: &ThreadFilter) {
        let dialect = self.database.dialect();
        find.text("t.root_id IS NULL AND t.tenant = ").value(self.tenant.as_str());
        find.text(" AND (");
        for (index, graph) in filter.graphs.iter().enumerate() {
            find.text(if index == 0 { "t.graph = " } else { " OR t.graph = " })
                .value(graph.as_str());
        }
        find.text(if filter.graphs.is_empty() { "1 = 0)" } else { ")" });
        if !filter.ids.is_empty() {
            find.text(" AND t.id IN (");
            for (index, id) in filter.ids.iter().enumerate() {
                find.text(if index == 0 { "" } else { ", " }).value(*id);
            }
            find.text(")");
        }
        if filter.metadata.as_object().is_some_and(|wanted| !wanted.is_empty()) {
            // A thread that another face began has nothing noted; it is its graph's all the same.
            let implied = dialect.pick(
                "COALESCE(m.metadata, json_object('graph_id', t.graph))",
                "COALESCE(m.metadata, jsonb_build_object('graph_id', t.graph))",
            );
            find.text(" AND ").contains(implied, &filter.metadata);
        }
        if !filter.statuses.is_empty() {
            find.text(" AND ").text(STATUS).text(" IN (");
            for (index, status) in filter.statuses.iter().enumerate() {
                find.text(if index == 0 { "" } else { ", " }).value(status.as_str());
            }
            find.text(")");
        }
    }
}
