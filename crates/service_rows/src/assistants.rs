//! Assistants that clients made: a graph with a configuration, in versions.

use chrono::{DateTime, Utc};
use perihelion_database::{query, stored_row};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::{Kept, Result};

stored_row! {
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
}

#[derive(Clone, Debug, Default)]
pub struct AssistantFilter {
    pub graph: Option<String>,
    pub name: Option<String>,
    pub metadata: Option<Json>,
}

impl Kept {
    /// Keeps a version of an assistant, which is the latest one from then on.
    ///
    /// # Errors
    /// [`Error`](crate::Error); a duplicate if that version exists.
    pub async fn put_assistant(&self, new: &Assistant) -> Result<()> {
        let database = self.of_tenant();
        let mut transaction = database.begin().await?;
        let others =
            query("UPDATE service_assistant SET latest = $1 WHERE id = $2 AND tenant = $3");
        transaction.execute(&others.binds((false, new.id, &self.tenant))).await?;
        let insert = query(
            "INSERT INTO service_assistant (id, version, latest, tenant, graph, name, description, config, context, \
             metadata, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        );
        let insert = insert
            .binds((new.id, new.version, true, &self.tenant))
            .binds((&new.graph, &new.name, new.description.clone()))
            .binds((new.config.clone(), new.context.clone(), new.metadata.clone()))
            .binds((new.created_at, new.updated_at));
        transaction.execute(&insert).await?;
        Ok(transaction.commit().await?)
    }

    pub async fn choose_assistant(&self, id: Uuid, version: u32) -> Result<bool> {
        let database = self.of_tenant();
        let mut transaction = database.begin().await?;
        // First, to wait for a version that is being added: only a later statement sees it.
        let none = query("UPDATE service_assistant SET latest = $1 WHERE id = $2 AND tenant = $3");
        transaction.execute(&none.binds((false, id, &self.tenant))).await?;
        let choose = query(
            "UPDATE service_assistant SET latest = (version = $1) WHERE id = $2 AND tenant = $3 AND EXISTS \
             (SELECT 1 FROM service_assistant v WHERE v.id = $2 AND v.version = $1 AND v.tenant = $3)",
        );
        let is_there = transaction.execute(&choose.binds((version, id, &self.tenant))).await? > 0;
        let ended =
            if is_there { transaction.commit().await } else { transaction.roll_back().await };
        ended?;
        Ok(is_there)
    }

    pub async fn assistant(&self, id: Uuid) -> Result<Option<Assistant>> {
        let mut find = self.select::<Assistant>("service_assistant");
        find.text(" AND latest AND id = ").value(id);
        Ok(self.of_tenant().row(&find.build()).await?)
    }

    /// Returns all versions of an assistant, newest first.
    pub async fn assistant_versions(&self, id: Uuid) -> Result<Vec<Assistant>> {
        let mut find = self.select::<Assistant>("service_assistant");
        find.text(" AND id = ").value(id).text(" ORDER BY version DESC");
        Ok(self.of_tenant().rows(&find.build()).await?)
    }

    /// Lists the latest versions of assistants, newest first.
    pub async fn assistants(&self, filter: &AssistantFilter) -> Result<Vec<Assistant>> {
        let mut find = self.select::<Assistant>("service_assistant");
        find.text(" AND latest").given(" AND graph = ", filter.graph.as_ref());
        if let Some(name) = &filter.name {
            find.text(" AND ").mentions("name", name);
        }
        if let Some(metadata) = &filter.metadata {
            find.text(" AND ").contains("metadata", metadata);
        }
        find.text(" ORDER BY created_at DESC, id");
        Ok(self.of_tenant().rows(&find.build()).await?)
    }

    /// Deletes an assistant with its crons; returns whether there was one.
    pub async fn delete_assistant(&self, id: Uuid) -> Result<bool> {
        let database = self.of_tenant();
        let mut transaction = database.begin().await?;
        let crons = query("DELETE FROM service_cron WHERE assistant = $1 AND tenant = $2");
        transaction.execute(&crons.binds((id, &self.tenant))).await?;
        let assistant = query("DELETE FROM service_assistant WHERE id = $1 AND tenant = $2");
        let deleted = transaction.execute(&assistant.binds((id, &self.tenant))).await?;
        transaction.commit().await?;
        Ok(deleted > 0)
    }
}
