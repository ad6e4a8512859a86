//! Assistants that clients made: a graph with a configuration, in versions.

use chrono::{DateTime, Utc};
use perihelion_database::{Row, query};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::sql::Statement;
use crate::{Error, Kept};

const SELECT: &str = "SELECT id, version, graph, name, description, config, context, metadata, created_at, updated_at \
    FROM service_assistant WHERE tenant = ";

/// A version of an assistant.
#[derive(Clone, Debug)]
pub struct Assistant {
    pub id: Uuid,
    pub version: u32,
    pub graph: String,
    pub name: String,
    pub description: Option<String>,
    pub config: Json,
    pub context: Json,
    pub metadata: Json,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Which assistants are listed.
#[derive(Clone, Debug, Default)]
pub struct AssistantFilter {
    pub graph: Option<String>,
    pub name: Option<String>,
    pub metadata: Option<Json>,
}

impl Assistant {
    fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.get(0)?,
            version: row.get::<i64>(1)?.try_into().unwrap_or(u32::MAX),
            graph: row.get(2)?,
            name: row.get(3)?,
            description: row.get(4)?,
            config: row.get(5)?,
            context: row.get(6)?,
            metadata: row.get(7)?,
            created_at: row.get(8)?,
            updated_at: row.get(9)?,
        })
    }
}

impl Kept {
    fn select_assistants(&self) -> Statement {
        let mut find = self.statement(SELECT);
        find.value(self.tenant.as_str());
        find
    }

    /// Keeps a version of an assistant, which is the latest one from then on.
    ///
    /// # Errors
    /// [`Error`]; one that is a duplicate when that version is there already.
    pub async fn put_assistant(&self, new: &Assistant) -> Result<(), Error> {
        let database = self.of_tenant();
        let mut transaction = database.begin().await?;
        let others =
            query("UPDATE service_assistant SET latest = $1 WHERE id = $2 AND tenant = $3");
        transaction.execute(&others.bind(false).bind(new.id).bind(self.tenant.as_str())).await?;
        let insert = query(
            "INSERT INTO service_assistant (id, version, latest, tenant, graph, name, description, config, context, \
             metadata, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        );
        let insert = insert
            .bind(new.id)
            .bind(new.version)
            .bind(true)
            .bind(self.tenant.as_str())
            .bind(new.graph.as_str())
            .bind(new.name.as_str())
            .bind(new.description.clone())
            .bind(new.config.clone())
            .bind(new.context.clone())
            .bind(new.metadata.clone())
            .bind(new.created_at)
            .bind(new.updated_at);
        transaction.execute(&insert).await?;
        Ok(transaction.commit().await?)
    }

    /// Makes an older version of an assistant the latest one.
    pub async fn choose_assistant(&self, id: Uuid, version: u32) -> Result<bool, Error> {
        let versions = self.assistant_versions(id).await?;
        if versions.iter().all(|one| one.version != version) {
            return Ok(false);
        }
        let choose = query(
            "UPDATE service_assistant SET latest = (version = $1) WHERE id = $2 AND tenant = $3",
        );
        let choose = choose.bind(version).bind(id).bind(self.tenant.as_str());
        Ok(self.of_tenant().execute(&choose).await? > 0)
    }

    /// Returns the latest version of an assistant.
    pub async fn assistant(&self, id: Uuid) -> Result<Option<Assistant>, Error> {
        let mut find = self.select_assistants();
        find.text(" AND latest AND id = ").value(id);
        let found = self.of_tenant().fetch_optional(&find.build()).await?;
        found.as_ref().map(Assistant::read).transpose()
    }

    /// Returns all versions of an assistant, newest first.
    pub async fn assistant_versions(&self, id: Uuid) -> Result<Vec<Assistant>, Error> {
        let mut find = self.select_assistants();
        find.text(" AND id = ").value(id).text(" ORDER BY version DESC");
        self.of_tenant().fetch_all(&find.build()).await?.iter().map(Assistant::read).collect()
    }

    /// Lists the latest versions of assistants, newest first.
    pub async fn assistants(&self, filter: &AssistantFilter) -> Result<Vec<Assistant>, Error> {
        let mut find = self.select_assistants();
        find.text(" AND latest");
        if let Some(graph) = &filter.graph {
            find.text(" AND graph = ").value(graph.as_str());
        }
        if let Some(name) = &filter.name {
            find.text(" AND lower(name) LIKE ").value(format!("%{}%", name.to_lowercase()));
        }
        if let Some(metadata) = &filter.metadata {
            find.text(" AND ").contains("metadata", metadata);
        }
        find.text(" ORDER BY created_at DESC, id");
        self.of_tenant().fetch_all(&find.build()).await?.iter().map(Assistant::read).collect()
    }

    /// Deletes an assistant with all its versions.
    pub async fn delete_assistant(&self, id: Uuid) -> Result<bool, Error> {
        let delete = query("DELETE FROM service_assistant WHERE id = $1 AND tenant = $2");
        Ok(self.of_tenant().execute(&delete.bind(id).bind(self.tenant.as_str())).await? > 0)
    }
}
