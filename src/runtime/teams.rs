//! Teams: designed, kept, offered to the star (S1.10).

use std::path::Path;
use std::sync::Arc;

use perihelion_database::Database;

use super::{Error, LOCAL_TENANT, Runtime, plugins};
use crate::checkpoint;
use crate::clock;
use crate::config::{Settings, strict};
use crate::ids::ThreadId;
use crate::mcp::ServerInfo;
use crate::swarm::{Agent, Kinds, Roster, Team, TeamAgent, TeamDesign, clean_name};
use crate::teams::{Brief, KeptTeam, Workflows, design};

/// The teams of a running process.
pub(super) struct Teams {
    kept: Workflows,
    kinds: Arc<Kinds>,
}

impl Teams {
    pub async fn open(settings: &Settings, kinds: &Arc<Kinds>) -> Result<Self, Error> {
        Ok(Self { kept: open_workflows(settings).await?, kinds: Arc::clone(kinds) })
    }

    /// Offers a tenant's teams as they are kept now; what cannot be read leaves those there were.
    pub async fn offer(&self, tenant: &str, roster: &Arc<Roster>) {
        match self.kept.for_tenant(tenant).list().await {
            Ok(teams) => {
                let agent = |kept: KeptTeam| -> Arc<dyn Agent> {
                    Arc::new(TeamAgent::new(kept.team, &self.kinds, roster))
                };
                roster.set_teams(tenant, teams.into_iter().map(agent));
            }
            Err(error) => tracing::warn!(%error, "the teams could not be read; those known stay"),
        }
    }

    pub async fn close(&self) {
        self.kept.close().await;
    }
}

/// Opens the teams of the settings' database.
///
/// # Errors
/// [`Error::Database`] when it cannot be opened.
pub async fn open_workflows(settings: &Settings) -> Result<Workflows, Error> {
    let database = Database::open(settings.store.database.expose()).await?;
    Ok(Workflows::new(database, LOCAL_TENANT))
}

/// Finds a team by its name, with or without the prefix of its agent.
///
/// # Errors
/// [`Error::NoTeam`] with the nearest name.
pub async fn find_team(kept: &Workflows, name: &str) -> Result<KeptTeam, Error> {
    let wanted = clean_name(name);
    if let Some(found) = kept.find(&wanted, None).await? {
        return Ok(found);
    }
    let teams = kept.list().await?;
    let names = teams.iter().map(|kept| kept.team.design.name.as_str());
    let hint = strict::nearest(&wanted, names);
    let hint = hint.map_or_else(String::new, |best| format!(" (did you mean {best}?)"));
    Err(Error::NoTeam { name: wanted, hint })
}

/// Checks a design that came from elsewhere by the servers of the servers file, and keeps it.
///
/// # Errors
/// [`Error::TeamDesign`] with all that is wrong.
pub async fn import_team(
    kept: &Workflows,
    design: TeamDesign,
    servers_file: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Team, Error> {
    let servers = plugins::read(servers_file, env)?.servers;
    let servers: Vec<String> = servers.into_iter().map(|server| server.name).collect();
    let design = checked(design, &servers)?;
    let version = kept.save(&design, clock::now()).await?;
    Ok(Team { version, design })
}

fn checked(design: TeamDesign, servers: &[String]) -> Result<TeamDesign, Error> {
    let design = design.cleaned();
    match design.problems(servers).as_slice() {
        [] => Ok(design),
        problems => Err(Error::TeamDesign(problems.join("; "))),
    }
}

impl Runtime {
    /// Returns the teams that are kept of a tenant.
    ///
    /// # Errors
    /// [`Error::NoTeams`] where the runtime keeps none.
    pub fn workflows(&self, tenant: &str) -> Result<Workflows, Error> {
        Ok(self.teams().ok_or(Error::NoTeams)?.kept.for_tenant(tenant))
    }

    /// Has the architect design a team for a tenant's goal; nothing is kept.
    ///
    /// # Errors
    /// [`Error::Model`] when no acceptable design could be had, [`Error::NoServers`] when there is nothing to design with.
    pub async fn design_team(&self, tenant: &str, goal: &str) -> Result<TeamDesign, Error> {
        let servers: Vec<ServerInfo> =
            self.agents().into_iter().map(|agent| agent.server).collect();
        if servers.is_empty() {
            return Err(Error::NoServers);
        }
        let kept = self.workflows(tenant)?.list().await?;
        let teams: Vec<String> = kept.into_iter().map(|kept| kept.team.design.name).collect();
        let thread = ThreadId::new().to_string();
        let brief = Brief { goal, servers: &servers, teams: &teams, thread };
        Ok(design(&**self.model(), self.prompts(), brief).await?)
    }

    /// Checks a tenant's design and keeps it as the newest version of its team, and offers it.
    ///
    /// # Errors
    /// [`Error::TeamDesign`] with all that is wrong, [`Error::Database`].
    pub async fn save_team(&self, tenant: &str, design: TeamDesign) -> Result<Team, Error> {
        let servers: Vec<String> =
            self.agents().into_iter().map(|agent| agent.server.name).collect();
        let design = checked(design, &servers)?;
        let version = self.workflows(tenant)?.save(&design, clock::now()).await?;
        self.offer_teams(tenant).await;
        Ok(Team { version, design })
    }

    /// Offers a tenant's teams as they are kept now, so that a run sees what any process has made.
    pub(super) async fn offer_teams(&self, tenant: &str) {
        if let Some(teams) = self.teams() {
            teams.offer(tenant, &self.roster).await;
        }
    }

    /// Returns whose thread it is; of a new one, whose it will be.
    pub(super) async fn tenant_of(&self, thread: ThreadId) -> Result<String, Error> {
        match self.store().info(thread).await {
            Ok(info) => Ok(info.tenant),
            Err(checkpoint::Error::UnknownThread(_)) => Ok(self.runner().tenant().to_owned()),
            Err(error) => Err(error.into()),
        }
    }
}
