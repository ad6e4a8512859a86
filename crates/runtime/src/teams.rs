//! Teams: stored in the table `workflows`, in versions, and offered to the star (S1.10).
//!
//! Enter at [`TeamStore`]. Invariant: a stored version never changes. Deliberately absent: how a team is designed and how
//! it works ([`perihelion_star::design`], [`perihelion_star::TeamAgent`]).

use std::path::Path;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use perihelion_database::{Database, Error as DatabaseError, FromRow, Row, query};

use super::{Error, LOCAL_TENANT, Runtime, plugins};
use perihelion_engine::checkpoint::Cause;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_llm::ChatModel;
use perihelion_mcp::{self as mcp, ServerInfo};
use perihelion_settings::config::{Founding, Settings, strict};
use perihelion_star::{
    Agent, Architect, Brief, Founder, GRAPH, Kinds, Material, Roster, Team, TeamAgent, TeamDesign,
    TeamMember, clean_name, design,
};

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
    /// [`DatabaseError`]; the team is then not stored.
    pub async fn save(
        &self,
        design: &TeamDesign,
        now: DateTime<Utc>,
    ) -> Result<u32, DatabaseError> {
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
    /// [`DatabaseError`]; the team is then not stored.
    pub async fn save_once(
        &self,
        design: &TeamDesign,
        now: DateTime<Utc>,
    ) -> Result<u32, DatabaseError> {
        match self.find(&design.name, None).await? {
            Some(kept) if kept.team.design == *design => Ok(kept.team.version),
            _ => self.save(design, now).await,
        }
    }

    async fn newest(&self, name: &str) -> Result<u32, DatabaseError> {
        let find = query(
            "SELECT COALESCE(MAX(version), 0) FROM workflows WHERE tenant = $1 AND name = $2",
        )
        .binds((&self.tenant, name));
        Ok(self.database.row(&find).await?.unwrap_or_default())
    }

    /// Returns the newest version of each team, by name.
    pub async fn list(&self) -> Result<Vec<KeptTeam>, DatabaseError> {
        let all = query(
            "SELECT version, design, created_at FROM workflows AS one WHERE tenant = $1 AND version = \
             (SELECT MAX(version) FROM workflows AS other WHERE other.tenant = one.tenant AND other.name = one.name) \
             ORDER BY name",
        )
        .bind(&self.tenant);
        self.database.rows(&all).await
    }

    /// Returns a version of a team, or the newest one.
    pub async fn find(
        &self,
        name: &str,
        version: Option<u32>,
    ) -> Result<Option<KeptTeam>, DatabaseError> {
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
    pub async fn delete(&self, name: &str) -> Result<bool, DatabaseError> {
        let delete = query("DELETE FROM workflows WHERE tenant = $1 AND name = $2");
        Ok(self.database.execute(&delete.binds((&self.tenant, name))).await? > 0)
    }

    pub async fn close(&self) {
        self.database.close().await;
    }
}

impl FromRow for KeptTeam {
    fn from_row(row: &Row) -> Result<Self, DatabaseError> {
        let design = serde_json::from_value(row.get(1)?)
            .map_err(|error| DatabaseError::Column { column: "1".into(), source: error.into() })?;
        Ok(Self { team: Team { version: row.get(0)?, design }, created_at: row.get(2)? })
    }
}

#[derive(Clone)]
pub(super) struct Teams {
    kept: TeamStore,
    kinds: Arc<Kinds>,
    founding: Founding,
    roster: Weak<Roster>,
}

impl Teams {
    pub fn new(
        settings: &Settings,
        database: &Database,
        kinds: &Arc<Kinds>,
        roster: &Arc<Roster>,
    ) -> Self {
        let kept = TeamStore::new(database.clone(), LOCAL_TENANT);
        let kinds = Arc::clone(kinds);
        let roster = Arc::downgrade(roster);
        Self { kept, kinds, founding: settings.teams.architect, roster }
    }

    /// Returns the store for teams that are designed during a run, if that is permitted.
    pub fn founder(&self) -> Option<Arc<dyn Founder>> {
        (self.founding != Founding::Off).then(|| Arc::new(self.clone()) as _)
    }

    /// Offers a tenant's stored teams; if they cannot be read, the earlier ones stay.
    pub async fn load(&self, tenant: &str, roster: &Arc<Roster>) {
        match self.kept.for_tenant(tenant).list().await {
            Ok(teams) => {
                let edition = |KeptTeam { team, created_at }: &KeptTeam| {
                    format!("{} {} {created_at};", team.design.name, team.version)
                };
                let editions: String = teams.iter().map(edition).collect();
                roster.set_teams(tenant, &editions, || {
                    let agent = |kept: KeptTeam| -> Arc<dyn Agent> {
                        Arc::new(TeamAgent::new(kept.team, &self.kinds, roster))
                    };
                    let architect = (self.founding != Founding::Off).then(Architect::default);
                    let architect =
                        architect.map(|architect| Arc::new(architect) as Arc<dyn Agent>);
                    teams.into_iter().map(agent).chain(architect).collect()
                });
            }
            Err(error) => tracing::warn!(%error, "the teams could not be read; those known stay"),
        }
    }
}

#[async_trait]
impl Founder for Teams {
    async fn material(&self, tenant: &str) -> Result<(Vec<ServerInfo>, Material), Cause> {
        let roster = self.roster.upgrade().ok_or("the program ends")?;
        let servers = roster.servers();
        let names = servers.iter().map(|server| server.name.clone()).collect();
        let kept = self.kept.for_tenant(tenant);
        let material = material(&kept, names).await?;
        Ok((servers, material))
    }

    async fn found(&self, tenant: &str, design: &TeamDesign) -> Result<u32, Cause> {
        let kept = self.kept.for_tenant(tenant);
        let version = kept.save_once(design, clock::now()).await?;
        if let Some(roster) = self.roster.upgrade() {
            self.load(tenant, &roster).await;
        }
        Ok(version)
    }

    fn asks(&self) -> bool {
        self.founding == Founding::Ask
    }
}

async fn material(kept: &TeamStore, servers: Vec<String>) -> Result<Material, Error> {
    let teams = kept.list().await?.into_iter().map(|kept| kept.team.design);
    Ok(Material { servers, teams: teams.map(|design| (design.name.clone(), design)).collect() })
}

pub async fn open_team_store(settings: &Settings) -> Result<TeamStore, Error> {
    let database = Database::open(settings.store.database.expose()).await?;
    Ok(TeamStore::new(database, LOCAL_TENANT))
}

/// Finds a team by its name, with or without the prefix of its agent.
///
/// # Errors
/// [`Error::NoTeam`] with the nearest name.
pub async fn find_team(kept: &TeamStore, name: &str) -> Result<KeptTeam, Error> {
    let wanted = clean_name(name);
    if let Some(found) = kept.find(&wanted, None).await? {
        return Ok(found);
    }
    let teams = kept.list().await?;
    let names = teams.iter().map(|kept| kept.team.design.name.as_str());
    let hint = strict::did_you_mean(&wanted, names);
    Err(Error::NoTeam { name: wanted, hint })
}

/// Checks a design that came from elsewhere by the servers of the servers file, and keeps it.
///
/// # Errors
/// [`Error::TeamDesign`] with all that is wrong.
pub async fn import_team(
    kept: &TeamStore,
    design: TeamDesign,
    servers_file: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Team, Error> {
    let servers = plugins::read(servers_file, env)?.servers;
    let servers: Vec<String> = servers.into_iter().map(|server| server.name).collect();
    let design = checked(design, &material(kept, servers).await?)?;
    let version = kept.save(&design, clock::now()).await?;
    Ok(Team { version, design })
}

/// Returns the star as if it were a team, to be drawn: an agent for each server of the servers file, and the teams.
pub async fn star_as_team(
    kept: &TeamStore,
    servers_file: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<TeamDesign, Error> {
    let member = |name: String, servers| TeamMember { name, servers, ..TeamMember::default() };
    let servers = plugins::read(servers_file, env)?.servers.into_iter();
    let bound = servers.map(|server| member(mcp::agent_name(&server.name), vec![server.name]));
    let mut agents: Vec<TeamMember> = bound.collect();
    for kept in kept.list().await? {
        let of = kept.team.design.agents.iter().flat_map(|agent| agent.servers.clone()).collect();
        agents.push(member(kept.team.agent_name(), of));
    }
    Ok(TeamDesign { name: GRAPH.to_owned(), agents, ..TeamDesign::default() })
}

fn checked(design: TeamDesign, material: &Material) -> Result<TeamDesign, Error> {
    let design = design.cleaned();
    match design.problems(material).as_slice() {
        [] => Ok(design),
        problems => Err(Error::TeamDesign(problems.join("; "))),
    }
}

impl Runtime {
    /// Returns the stored teams of a tenant.
    ///
    /// # Errors
    /// [`Error::NoTeams`] if the runtime stores none.
    pub fn team_store(&self, tenant: &str) -> Result<TeamStore, Error> {
        Ok(self.teams.as_ref().ok_or(Error::NoTeams)?.kept.for_tenant(tenant))
    }

    /// Makes the architect design a team for a tenant's goal with a model, without storing it.
    ///
    /// # Errors
    /// [`Error::Model`] without a valid design, [`Error::NoServers`] without building blocks.
    pub async fn design_team(
        &self,
        tenant: &str,
        goal: &str,
        model: &dyn ChatModel,
    ) -> Result<TeamDesign, Error> {
        let servers: Vec<ServerInfo> =
            self.agents().list().into_iter().map(|agent| agent.server).collect();
        if servers.is_empty() {
            return Err(Error::NoServers);
        }
        let names = servers.iter().map(|server| server.name.clone()).collect();
        let material = material(&self.team_store(tenant)?, names).await?;
        let thread = ThreadId::new().to_string();
        let brief = Brief { goal, servers: &servers, material: &material, thread };
        Ok(design(model, &self.prompts, brief).await?)
    }

    /// Checks a tenant's design and keeps it as the newest version of its team, and offers it.
    ///
    /// # Errors
    /// [`Error::TeamDesign`] with all that is wrong, [`Error::Database`].
    pub async fn save_team(&self, tenant: &str, design: TeamDesign) -> Result<Team, Error> {
        let servers: Vec<String> =
            self.agents().list().into_iter().map(|agent| agent.server.name).collect();
        let design = checked(design, &material(&self.team_store(tenant)?, servers).await?)?;
        let version = self.team_store(tenant)?.save(&design, clock::now()).await?;
        self.load_teams(tenant).await;
        Ok(Team { version, design })
    }

    /// Offers a tenant's stored teams, so that a run sees the teams of every process.
    pub(super) async fn load_teams(&self, tenant: &str) {
        if let Some(teams) = &self.teams {
            teams.load(tenant, &self.roster).await;
        }
    }
}
