//! Stores designs of teams in the table `workflows`, in versions (S1.10).
//!
//! Enter at [`TeamStore`]. Invariant: a stored version never changes. Deliberately absent: how a team is designed and how it
//! works ([`perihelion_star::design`], [`perihelion_star::TeamAgent`]).

use chrono::{DateTime, Utc};
use perihelion_database::{Database, Error, FromRow, Row, query};
use perihelion_star::{Team, TeamDesign};

/// Attempts to store a version while other processes store versions of the same team.
const TRIES: u32 = 5;

#[derive(Clone, Debug)]
pub struct KeptTeam {
    pub team: Team,
    pub created_at: DateTime<Utc>,
}

#[derive(Clone)]
pub struct TeamStore {
    database: Database,
    tenant: String,
}

impl std::fmt::Debug for TeamStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TeamStore").field(&self.tenant).finish()
    }
}

impl TeamStore {
    pub fn new(database: Database, tenant: &str) -> Self {
        Self { database: database.of_tenant(tenant), tenant: tenant.to_owned() }
    }

    #[must_use]
    pub fn for_tenant(&self, tenant: &str) -> Self {
        Self::new(self.database.clone(), tenant)
    }

    /// Keeps a design as the newest version of its team, and returns the version.
    ///
    /// # Errors
    /// [`Error`]; the team is then not stored.
    pub async fn save(&self, design: &TeamDesign, now: DateTime<Utc>) -> Result<u32, Error> {
        let json = serde_json::to_value(design).unwrap_or_default();
        let mut tries = 0;
        loop {
            let version = self.newest(&design.name).await?.saturating_add(1);
            let insert = query(
                "INSERT INTO workflows (tenant, name, version, design, created_at) VALUES ($1, $2, $3, $4, $5)",
            )
            .binds((&self.tenant, &design.name, version, json.clone(), now));
            tries += 1;
            match self.database.execute(&insert).await {
                // Somebody else kept this version first.
                Err(error) if error.is_duplicate() && tries < TRIES => {}
                other => return other.map(|_| version),
            }
        }
    }

    /// Keeps a design unless it is the newest version of its team already, and returns the version.
    ///
    /// # Errors
    /// [`Error`]; the team is then not stored.
    pub async fn save_once(&self, design: &TeamDesign, now: DateTime<Utc>) -> Result<u32, Error> {
        match self.find(&design.name, None).await? {
            Some(kept) if kept.team.design == *design => Ok(kept.team.version),
            _ => self.save(design, now).await,
        }
    }

    async fn newest(&self, name: &str) -> Result<u32, Error> {
        let find = query(
            "SELECT COALESCE(MAX(version), 0) FROM workflows WHERE tenant = $1 AND name = $2",
        )
        .binds((&self.tenant, name));
        Ok(self.database.row(&find).await?.unwrap_or_default())
    }

    /// Returns the newest version of each team, by name.
    pub async fn list(&self) -> Result<Vec<KeptTeam>, Error> {
        let all = query(
            "SELECT version, design, created_at FROM workflows AS one WHERE tenant = $1 AND version = \
             (SELECT MAX(version) FROM workflows AS other WHERE other.tenant = one.tenant AND other.name = one.name) \
             ORDER BY name",
        )
        .bind(&self.tenant);
        self.database.rows(&all).await
    }

    /// Returns a version of a team, or the newest one.
    pub async fn find(&self, name: &str, version: Option<u32>) -> Result<Option<KeptTeam>, Error> {
        let version = match version {
            Some(version) => version,
            None => self.newest(name).await?,
        };
        let find = query(
            "SELECT version, design, created_at FROM workflows WHERE tenant = $1 AND name = $2 AND version = $3",
        )
        .binds((&self.tenant, name, version));
        self.database.row(&find).await
    }

    /// Deletes a team with all of its versions; false if it does not exist.
    pub async fn delete(&self, name: &str) -> Result<bool, Error> {
        let delete = query("DELETE FROM workflows WHERE tenant = $1 AND name = $2");
        Ok(self.database.execute(&delete.binds((&self.tenant, name))).await? > 0)
    }

    pub async fn close(&self) {
        self.database.close().await;
    }
}

impl FromRow for KeptTeam {
    fn from_row(row: &Row) -> Result<Self, Error> {
        let design = serde_json::from_value(row.get(1)?)
            .map_err(|error| Error::Column { column: "1".into(), reason: error.to_string() })?;
        Ok(Self { team: Team { version: row.get(0)?, design }, created_at: row.get(2)? })
    }
}
