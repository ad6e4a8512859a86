//! Stores designs of teams in the table `workflows`, in versions (S1.10).
//!
//! Enter at [`Workflows`]. Invariant: a stored version never changes. Deliberately absent: how a team is designed and how it
//! works ([`perihelion_star::design`], [`perihelion_star::TeamAgent`]).

use chrono::{DateTime, Utc};
use perihelion_database::{Database, Error, Row, query};
use perihelion_star::{Team, TeamDesign};

/// Times that a version is tried to be kept while others keep versions of the same team.
const TRIES: u32 = 5;

/// A version of a team that is kept.
#[derive(Clone, Debug)]
pub struct KeptTeam {
    pub team: Team,
    pub created_at: DateTime<Utc>,
}

/// The teams of one tenant.
#[derive(Clone)]
pub struct Workflows {
    database: Database,
    tenant: String,
}

impl std::fmt::Debug for Workflows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Workflows").field(&self.tenant).finish()
    }
}

impl Workflows {
    /// Uses a migrated database.
    pub fn new(database: Database, tenant: &str) -> Self {
        Self { database: database.of_tenant(tenant), tenant: tenant.to_owned() }
    }

    /// Returns the teams of another tenant.
    #[must_use]
    pub fn for_tenant(&self, tenant: &str) -> Self {
        Self::new(self.database.clone(), tenant)
    }

    /// Keeps a design as the newest version of its team, and returns the version.
    ///
    /// # Errors
    /// [`Error`]; nothing is kept then.
    pub async fn save(&self, design: &TeamDesign, now: DateTime<Utc>) -> Result<u32, Error> {
        let json = serde_json::to_value(design).unwrap_or_default();
        let mut tries = 0;
        loop {
            let version = self.newest(&design.name).await? + 1;
            let insert = query(
                "INSERT INTO workflows (tenant, name, version, design, created_at) VALUES ($1, $2, $3, $4, $5)",
            )
            .bind(self.tenant.as_str())
            .bind(design.name.as_str())
            .bind(version)
            .bind(json.clone())
            .bind(now);
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
    /// [`Error`]; nothing is kept then.
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
        .bind(self.tenant.as_str())
        .bind(name);
        let row = self.database.fetch_optional(&find).await?;
        let version = row.map(|row| row.get::<i64>(0)).transpose()?.unwrap_or_default();
        Ok(u32::try_from(version).unwrap_or(u32::MAX - 1))
    }

    /// Returns the newest version of each team, by name.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list(&self) -> Result<Vec<KeptTeam>, Error> {
        let all = query(
            "SELECT version, design, created_at FROM workflows AS one WHERE tenant = $1 AND version = \
             (SELECT MAX(version) FROM workflows AS other WHERE other.tenant = one.tenant AND other.name = one.name) \
             ORDER BY name",
        )
        .bind(self.tenant.as_str());
        self.database.fetch_all(&all).await?.iter().map(read).collect()
    }

    /// Returns a version of a team, or the newest one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn find(&self, name: &str, version: Option<u32>) -> Result<Option<KeptTeam>, Error> {
        let version = match version {
            Some(version) => version,
            None => self.newest(name).await?,
        };
        let find = query(
            "SELECT version, design, created_at FROM workflows WHERE tenant = $1 AND name = $2 AND version = $3",
        )
        .bind(self.tenant.as_str())
        .bind(name)
        .bind(version);
        self.database.fetch_optional(&find).await?.as_ref().map(read).transpose()
    }

    /// Deletes a team with all of its versions; false where there is none.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete(&self, name: &str) -> Result<bool, Error> {
        let delete = query("DELETE FROM workflows WHERE tenant = $1 AND name = $2")
            .bind(self.tenant.as_str())
            .bind(name);
        Ok(self.database.execute(&delete).await? > 0)
    }

    /// Closes the database.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

fn read(row: &Row) -> Result<KeptTeam, Error> {
    let version = u32::try_from(row.get::<i64>(0)?).unwrap_or(u32::MAX);
    let design: serde_json::Value = row.get(1)?;
    let design = serde_json::from_value(design)
        .map_err(|error| Error::Column { column: "1".into(), reason: error.to_string() })?;
    Ok(KeptTeam { team: Team { version, design }, created_at: row.get(2)? })
}
