//! The roster: which agents there are now; nodes are found here by name while threads are open (S1.09).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use crate::directory::{Directory, Fit};
use crate::{
    ARCHITECT, Agent, AgentCard, Menu, MenuSize, TEAM_PREFIX, menu::MenuQuery, parts::Withdraw,
    team,
};
use perihelion_mcp::{self as mcp, ServerInfo};

/// Makes an agent for any name, from recorded facts alone.
pub(super) type RecordedAgents = Arc<dyn Fn(&str) -> Arc<dyn Agent> + Send + Sync>;

#[derive(Default)]
pub struct Roster {
    listed: RwLock<Arc<Listed>>,
    /// Why agents that could be there are not.
    absences: RwLock<BTreeMap<String, String>>,
    /// Resolves any name: for replays, in which every node observes what was recorded.
    recorded: Option<RecordedAgents>,
}

impl std::fmt::Debug for Roster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Roster").field(&self.listed().common.agents.keys()).finish()
    }
}

#[derive(Default)]
struct Listed {
    bound: Vec<Arc<dyn Agent>>,
    /// The view of a tenant without teams.
    common: Arc<View>,
    tenants: BTreeMap<String, Arc<OfTenant>>,
}

/// The teams of a tenant, and its view with them.
struct OfTenant {
    edition: String,
    teams: Vec<Arc<dyn Agent>>,
    view: View,
}

#[derive(Default)]
struct View {
    /// By name.
    agents: BTreeMap<String, Arc<dyn Agent>>,
    /// Made for the first search; a small catalog does not need it.
    directory: OnceLock<Directory>,
}

impl Listed {
    fn of(bound: Vec<Arc<dyn Agent>>, before: &Self) -> Self {
        let tenant = |(name, known): (&String, &Arc<OfTenant>)| {
            let OfTenant { edition, teams, .. } = &**known;
            (name.clone(), Arc::new(OfTenant::of(edition, teams.clone(), &bound)))
        };
        let tenants = before.tenants.iter().map(tenant).collect();
        Self { common: Arc::new(View::of(&bound)), tenants, bound }
    }

    fn view(&self, tenant: &str) -> &View {
        self.tenants.get(tenant).map_or(&self.common, |known| &known.view)
    }
}

impl OfTenant {
    fn of(edition: &str, teams: Vec<Arc<dyn Agent>>, bound: &[Arc<dyn Agent>]) -> Self {
        let view = View::of(teams.iter().chain(bound));
        Self { edition: edition.to_owned(), teams, view }
    }
}

impl View {
    fn of<'a>(agents: impl IntoIterator<Item = &'a Arc<dyn Agent>>) -> Self {
        let named = |agent: &Arc<dyn Agent>| (agent.card().name.clone(), Arc::clone(agent));
        Self { agents: agents.into_iter().map(named).collect(), directory: OnceLock::new() }
    }

    fn directory(&self) -> &Directory {
        let cards = || self.agents.values().map(|agent| agent.card());
        self.directory.get_or_init(|| Directory::of(cards()))
    }
}

impl Roster {
    /// Makes a roster that knows no server and has an agent under every name.
    pub(super) fn of_recorded(agents: RecordedAgents) -> Self {
        Self { recorded: Some(agents), ..Self::default() }
    }

    /// Finds the agent of a node; for a team, the team of any tenant, whose node then finds the right one.
    pub(super) fn find(&self, name: &str) -> Option<Arc<dyn Agent>> {
        let listed = self.listed();
        let views = listed.tenants.values().map(|known| &known.view);
        let mut views = std::iter::once(&*listed.common).chain(views);
        if let Some(agent) = views.find_map(|view| view.agents.get(name)) {
            return Some(Arc::clone(agent));
        }
        self.recorded.as_ref().map(|recorded| recorded(name))
    }

    /// Returns why an agent is missing, if the reason is known.
    pub(super) fn absence(&self, name: &str) -> Option<String> {
        if name.starts_with(TEAM_PREFIX) {
            return Some(team::GONE.to_owned());
        }
        if name == ARCHITECT {
            return Some("teams.architect is \"off\" in the settings".to_owned());
        }
        self.absences.read().get(name).cloned()
    }

    /// Takes these agents in place of those there were; teams stay.
    pub fn set(&self, agents: impl IntoIterator<Item = Arc<dyn Agent>>) {
        let mut listed = self.listed.write();
        *listed = Arc::new(Listed::of(agents.into_iter().collect(), &listed));
    }

    pub(super) fn find_for(&self, tenant: &str, name: &str) -> Option<Arc<dyn Agent>> {
        self.listed().view(tenant).agents.get(name).cloned()
    }

    /// Takes these teams of a tenant in place of those there were, unless they are of the same edition, as before most runs.
    pub fn set_teams(
        &self,
        tenant: &str,
        edition: &str,
        teams: impl FnOnce() -> Vec<Arc<dyn Agent>>,
    ) {
        let mut listed = self.listed.write();
        if listed.tenants.get(tenant).is_some_and(|known| known.edition == edition) {
            return;
        }
        let teams = teams();
        let mut tenants = listed.tenants.clone();
        if teams.is_empty() {
            if tenants.remove(tenant).is_none() {
                return;
            }
        } else {
            let known = OfTenant::of(edition, teams, &listed.bound);
            tenants.insert(tenant.to_owned(), Arc::new(known));
        }
        let bound = listed.bound.clone();
        let common = Arc::clone(&listed.common);
        *listed = Arc::new(Listed { bound, common, tenants });
    }

    pub fn cards(&self, tenant: &str) -> Vec<AgentCard> {
        self.listed().view(tenant).agents.values().map(|agent| agent.card().clone()).collect()
    }

    /// Explains why servers of the file have no agents.
    pub fn set_absences(&self, reasons: impl IntoIterator<Item = (String, String)>) {
        let reasons = reasons.into_iter().map(|(server, why)| (mcp::agent_name(&server), why));
        *self.absences.write() = reasons.collect();
    }

    pub fn servers(&self) -> Vec<ServerInfo> {
        let listed = self.listed();
        let bound = listed.bound.iter();
        let mut servers: Vec<ServerInfo> =
            bound.filter_map(|agent| agent.server().map(|one| (**one).clone())).collect();
        servers.sort_by(|one, other| one.name.cmp(&other.name));
        servers
    }

    pub fn names(&self, tenant: &str) -> Vec<String> {
        self.listed().view(tenant).agents.keys().cloned().collect()
    }

    /// Returns the catalog for a tenant's request; `trouble` explains why an agent cannot be used now.
    pub(super) fn menu(
        &self,
        wanted: &MenuQuery<'_>,
        size: MenuSize,
        failure_of: impl Fn(&str) -> Option<String>,
    ) -> Menu {
        let listed = self.listed();
        let listed = listed.view(wanted.tenant);
        let is_free = |name: &&String| !wanted.disabled.contains(name);
        let free: Vec<&String> = listed.agents.keys().filter(is_free).collect();
        let mut shown: BTreeSet<&str> = free.iter().map(|name| name.as_str()).collect();
        let mut fits: BTreeMap<String, Fit> = BTreeMap::new();
        if free.len() > size.all {
            let directory = listed.directory();
            let found = directory.find(&wanted.query);
            let fit: BTreeSet<&str> = found.iter().map(|fit| fit.agent.as_str()).collect();
            let others = free.iter().map(|name| name.as_str()).filter(|name| !fit.contains(name));
            let ranked = found.iter().map(|fit| fit.agent.as_str()).chain(others);
            // However much was found besides, the best are left.
            let places =
                size.fitting.saturating_sub(wanted.found.len()).max(size.fitting.div_ceil(3));
            let fitting: BTreeSet<&str> =
                ranked.filter(|name| shown.contains(name)).take(places).collect();
            let sets = [&wanted.kept, &wanted.found, &fitting];
            shown.retain(|name| sets.iter().any(|names| names.contains(name)));
            let all = [&wanted.query[..], &wanted.searched].concat();
            let reported = directory.find(&all).into_iter();
            fits.extend(reported.map(|fit| (fit.agent.clone(), fit)));
        }
        let line = |name: &&String| {
            let agent = listed.agents.get(*name)?;
            let first = fits.get(*name).map_or(&[][..], |fit| &fit.tools);
            let line = agent.menu_line(first);
            let line = match agent.server().and_then(|server| failure_of(&server.name)) {
                Some(why) => format!("{line} (cannot be used now: {why})"),
                None => line,
            };
            Some(((*name).clone(), line))
        };
        let (shown, hidden): (Vec<&String>, Vec<&String>) =
            free.into_iter().partition(|name| shown.contains(name.as_str()));
        Menu {
            shown: shown.iter().filter_map(line).collect(),
            hidden: hidden.into_iter().cloned().collect(),
        }
    }

    /// Returns the agents for a tenant's request, best first: preferred ones in their order, then the rest.
    pub(super) fn fitting(&self, wanted: &MenuQuery<'_>, prefer: &[String]) -> Vec<String> {
        let listed = self.listed();
        let view = listed.view(wanted.tenant);
        let preferred = prefer.iter().filter(|name| view.agents.contains_key(*name)).cloned();
        let mut names: Vec<String> = preferred.collect();
        let found = view.directory().find(&wanted.query).into_iter().map(|fit| fit.agent);
        for name in found.filter(|name| !wanted.disabled.contains(name)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the names of the agents that fit a query, best first.
    pub(super) fn find_agents(
        &self,
        tenant: &str,
        query: &str,
        disabled: &[String],
        most: usize,
    ) -> Vec<String> {
        let listed = self.listed();
        let found = listed.view(tenant).directory().find(&[(1.0, query)]).into_iter();
        found.map(|fit| fit.agent).filter(|name| !disabled.contains(name)).take(most).collect()
    }

    fn listed(&self) -> Arc<Listed> {
        Arc::clone(&self.listed.read())
    }
}

impl Withdraw for Roster {
    fn withdraw(&self, agent: &str, why: String) {
        {
            // Under one lock: a reload or another withdrawal at the same time is not to be undone.
            let mut listed = self.listed.write();
            let stays = |one: &&Arc<dyn Agent>| one.card().name != agent;
            let bound = listed.bound.iter().filter(stays).cloned().collect();
            *listed = Arc::new(Listed::of(bound, &listed));
        }
        let mut absences = self.absences.write();
        absences.insert(agent.to_owned(), why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kinds, ServerAgent, ToolLoop};

    fn roster(names: &[&str]) -> Roster {
        let kinds = Arc::new(Kinds::new(Arc::new(ToolLoop)));
        let agent = |name: &&str| -> Arc<dyn Agent> {
            let name = (*name).to_owned();
            let description = "Reads.".to_owned();
            let server = ServerInfo { name, description, ..ServerInfo::default() };
            Arc::new(ServerAgent::new(server, &kinds))
        };
        let roster = Roster::default();
        roster.set(names.iter().map(agent));
        roster
    }

    fn wanted<'a>(disabled: &'a [String], kept: &[&'a str], query: &'a str) -> MenuQuery<'a> {
        let kept = kept.iter().copied().collect();
        let found = BTreeSet::new();
        MenuQuery {
            tenant: "",
            disabled,
            kept,
            found,
            query: vec![(1.0, query)],
            searched: Vec::new(),
        }
    }

    fn names(menu: &Menu) -> Vec<&str> {
        menu.shown.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn the_catalog_marks_an_unavailable_agent_and_leaves_disabled_ones_out() {
        let failure_of =
            |name: &str| (name == "b").then(|| "its circuit breaker is open".to_owned());
        let disabled = ["mcp_agent_c".to_owned()];
        let size = MenuSize { all: 2, fitting: 1 };
        let menu = roster(&["a", "b", "c"]).menu(&wanted(&disabled, &[], "c"), size, failure_of);
        let lines: Vec<_> = menu.shown.iter().map(|(_, line)| line.as_str()).collect();
        let usual = "Reads; tools: none";
        let reported = format!("{usual} (cannot be used now: its circuit breaker is open)");
        assert_eq!(lines, [usual, &reported]);
        assert!(menu.hidden.is_empty());
    }

    #[test]
    fn of_many_agents_the_matching_and_pinned_ones_are_shown_and_the_rest_are_named() {
        let roster = roster(&["mail", "maps", "news", "shop"]);
        let size = MenuSize { all: 3, fitting: 1 };
        let menu = roster.menu(&wanted(&[], &["mcp_agent_shop"], "send mail"), size, |_| None);
        assert_eq!(names(&menu), ["mcp_agent_mail", "mcp_agent_shop"]);
        assert_eq!(menu.hidden, ["mcp_agent_maps", "mcp_agent_news"]);
        let menu =
            roster.menu(&wanted(&[], &["mcp_agent_gone"], "nothing that fits"), size, |_| None);
        assert_eq!(names(&menu), ["mcp_agent_mail"], "where nothing fits, the first by name");
        let found = BTreeSet::from(["mcp_agent_news", "mcp_agent_shop"]);
        let searched = MenuQuery { found, ..wanted(&[], &[], "send mail") };
        let menu = roster.menu(&searched, size, |_| None);
        assert_eq!(names(&menu), ["mcp_agent_mail", "mcp_agent_news", "mcp_agent_shop"]);
        let disabled = ["mcp_agent_mail".to_owned()];
        let found = roster.find_agents("", "mail, news and maps", &disabled, 1);
        assert_eq!(found, ["mcp_agent_maps"]);
    }

    #[test]
    fn equal_teams_are_made_once_and_those_of_one_tenant_leave_others_as_they_are() {
        let roster = roster(&["maps"]);
        let team = |name: &str| {
            let server = ServerInfo { name: name.to_owned(), ..ServerInfo::default() };
            let kinds = Arc::new(Kinds::new(Arc::new(ToolLoop)));
            vec![Arc::new(ServerAgent::new(server, &kinds)) as Arc<dyn Agent>]
        };
        roster.set_teams("acme", "1", || team("trips"));
        let before = roster.listed();
        let directory = std::ptr::from_ref(before.view("acme").directory());
        roster.set_teams("acme", "1", || panic!("they are known"));
        roster.set_teams("rival", "1", || team("tours"));
        roster.set_teams("third", "", Vec::new);
        let after = roster.listed();
        assert!(std::ptr::eq(directory, after.view("acme").directory()));
        assert_eq!(roster.names("rival"), ["mcp_agent_maps", "mcp_agent_tours"]);
        assert_eq!(roster.names("third"), ["mcp_agent_maps"]);
        roster.set_teams("acme", "", Vec::new);
        assert_eq!(roster.names("acme"), ["mcp_agent_maps"]);
        roster.set([]);
        assert_eq!(roster.names("rival"), ["mcp_agent_tours"]);
    }

    #[test]
    fn a_removed_agent_is_not_shown_or_found() {
        let roster = roster(&["find_agent", "maps"]);
        roster.withdraw("mcp_agent_maps", "it changed".into());
        assert_eq!(roster.names(""), ["mcp_agent_find_agent"], "no name is that of the search");
        assert!(roster.find_agents("", "maps", &[], 5).is_empty());
    }
}
