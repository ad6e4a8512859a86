//! The design of a team, and its checks.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AGENT_PREFIX, FIND_AGENT, TEAM_PREFIX, node_names};
use perihelion_settings::config::strict::did_you_mean;

/// Teams within each other, the outermost included.
pub(super) const MAX_DEPTH: usize = 3;

/// Agents of one team; more of them are no team that one supervisor has an overview of.
pub(super) const MAX_AGENTS: usize = 8;

/// Servers of one agent; more of them are no single purpose.
const MAX_SERVERS: usize = 3;

const NAME_CHARS: usize = 48;

/// Characters of a description, a role or a goal.
const TEXT_CHARS: usize = 1_000;

/// What the architect answers, under the schema name `team_design`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TeamDesign {
    /// A short name of letters, digits, `_` and `-`.
    #[schemars(length(max = NAME_CHARS))]
    pub name: String,
    /// What the team is for, in a sentence: its line in the supervisor's menu.
    #[schemars(length(max = TEXT_CHARS))]
    pub description: String,
    /// The team's agents, each with one purpose.
    #[schemars(length(max = MAX_AGENTS))]
    pub agents: Vec<TeamMember>,
}

/// One agent of a team.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TeamMember {
    /// A short name, unique in the team.
    #[schemars(length(max = NAME_CHARS))]
    pub name: String,
    /// What it is, in a few words.
    #[schemars(length(max = TEXT_CHARS))]
    pub role: String,
    /// What it is to achieve, in a sentence.
    #[schemars(length(max = TEXT_CHARS))]
    pub goal: String,
    /// The servers whose tools it works with, by their names in the catalogue; or one team, by its name there.
    #[schemars(length(max = MAX_SERVERS), inner(length(max = 100)))]
    pub servers: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Material {
    pub servers: Vec<String>,
    pub teams: BTreeMap<String, TeamDesign>,
}

impl Material {
    /// Returns the team that a member's server names, if it is a team; servers take precedence.
    fn team(&self, server: &str) -> Option<&TeamDesign> {
        if self.servers.iter().any(|known| known == server) {
            return None;
        }
        self.teams.get(server.strip_prefix(TEAM_PREFIX)?)
    }

    /// Returns the contents of a catalog: servers, and teams by the names of their agents.
    fn names(&self) -> Vec<String> {
        let teams = self.teams.keys().map(|name| format!("{TEAM_PREFIX}{name}"));
        self.servers.iter().cloned().chain(teams).collect()
    }

    /// Returns the deepest path from a design to a team without teams, or a cycle.
    fn deepest(&self, design: &TeamDesign, above: &[String]) -> Vec<String> {
        let way: Vec<String> = above.iter().cloned().chain([design.name.clone()]).collect();
        if above.contains(&design.name) {
            return way;
        }
        let servers = design.agents.iter().flat_map(|agent| &agent.servers);
        let below = servers.filter_map(|server| self.team(server));
        let ways = below.map(|team| self.deepest(team, &way));
        let is_round = |way: &Vec<String>| {
            way.last().is_some_and(|last| way.iter().filter(|one| *one == last).count() > 1)
        };
        ways.max_by_key(|way| (is_round(way), way.len())).unwrap_or(way)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Team {
    /// Counted from 1.
    pub version: u32,
    pub design: TeamDesign,
}

impl Team {
    pub fn agent_name(&self) -> String {
        format!("{TEAM_PREFIX}{}", self.design.name)
    }
}

/// Brings a name into the form that names of teams and their agents have: letters, digits, `_` and `-`.
pub fn clean_name(name: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let words = name.split(|letter| !is_part(letter)).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("_");
    name.strip_prefix(TEAM_PREFIX).map_or(name.clone(), str::to_owned)
}

impl TeamDesign {
    #[must_use]
    pub fn cleaned(mut self) -> Self {
        self.name = clean_name(&self.name);
        self.description = self.description.trim().to_owned();
        for agent in &mut self.agents {
            agent.name = clean_name(&agent.name);
            agent.role = agent.role.trim().to_owned();
            agent.goal = agent.goal.trim().to_owned();
            for server in &mut agent.servers {
                let name = server.trim();
                *server = name.strip_prefix(AGENT_PREFIX).unwrap_or(name).to_owned();
            }
        }
        self
    }

    /// Returns the problems of the design with the present servers and teams; empty if it is valid.
    pub fn problems(&self, material: &Material) -> Vec<String> {
        let mut problems: Vec<String> = Vec::new();
        problems.extend(bad_name("name", &self.name));
        problems.extend(bad_text("description", &self.description));
        match self.agents.len() {
            0 => problems.push("agents is empty: a team has at least one".to_owned()),
            1..=MAX_AGENTS => {}
            more => problems.push(format!(
                "agents: a team has at most {MAX_AGENTS}, and this one has {more}: leave out what the goal does not need"
            )),
        }
        let mut names = BTreeSet::new();
        let mut goals = BTreeSet::new();
        for (index, agent) in self.agents.iter().enumerate() {
            let place = format!("agents[{index}]");
            problems.extend(bad_name(&format!("{place}.name"), &agent.name));
            problems.extend(bad_text(&format!("{place}.role"), &agent.role));
            problems.extend(bad_text(&format!("{place}.goal"), &agent.goal));
            if !names.insert(agent.name.to_lowercase()) {
                let name = &agent.name;
                problems.push(format!("{place}.name: another agent has this name: {name}"));
            }
            if !goals.insert((agent.goal.to_lowercase(), agent.servers.clone())) {
                problems.push(format!(
                    "{place}: another agent has the same goal and servers: each agent has a purpose of its own"
                ));
            }
            problems.extend(agent.problems(&place, material));
        }
        problems.extend(self.depth_problem(material));
        problems
    }

    /// Reports that teams are nested too deeply, or in a cycle.
    fn depth_problem(&self, material: &Material) -> Option<String> {
        // It takes the place of the version that there is.
        let mut material = material.clone();
        material.teams.insert(self.name.clone(), self.clone());
        let way = material.deepest(self, &[]);
        let arrows = way.join(" → ");
        if way.len() > 1 && way.last() == way.first() {
            return Some(format!(
                "the team would work within itself; leave out the team that leads back: {arrows}"
            ));
        }
        let is_too_deep = way.len() > MAX_DEPTH;
        is_too_deep
            .then(|| format!("teams stand at most {MAX_DEPTH} deep within each other: {arrows}"))
    }
}

impl TeamMember {
    fn problems(&self, place: &str, material: &Material) -> Vec<String> {
        let mut problems = Vec::new();
        let servers = &material.names();
        let has_team = self.servers.iter().any(|server| material.team(server).is_some());
        if has_team && self.servers.len() > 1 {
            problems.push(format!(
                "{place}.servers: a team works alone; make an agent for it, and one for each server beside it"
            ));
        }
        match self.servers.len() {
            0 => problems.push(format!(
                "{place}.servers is empty: an agent works with the tools of at least one server"
            )),
            1..=MAX_SERVERS => {}
            more => problems.push(format!(
                "{place}.servers: {more} servers are no single purpose; make an agent for each"
            )),
        }
        let mut seen = BTreeSet::new();
        for server in &self.servers {
            if !seen.insert(server) {
                problems.push(format!("{place}.servers names a server twice: {server}"));
            }
            if !servers.contains(server) {
                let known = servers.iter().map(String::as_str);
                let hint = did_you_mean(server, known.clone());
                let known = match servers.as_slice() {
                    [] => "there are none".to_owned(),
                    _ => format!("the servers are {}", known.collect::<Vec<_>>().join(", ")),
                };
                problems.push(format!(
                    "{place}.servers names a server that is not there{hint}; {known}: {server}"
                ));
            }
        }
        problems
    }

    /// Returns the agents of the member: itself, or one for each of its servers.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (String, &String)> {
        let is_one = self.servers.len() == 1;
        self.servers.iter().map(move |server| {
            let name = if !is_one {
                format!("{}_{server}", self.name)
            } else if server.starts_with(TEAM_PREFIX) {
                // Its node is found by this name, also where nothing is known of it but what was recorded.
                server.clone()
            } else {
                self.name.clone()
            };
            (name, server)
        })
    }
}

fn bad_name(place: &str, name: &str) -> Option<String> {
    let reserved = node_names().into_iter().chain([FIND_AGENT]).any(|node| node == name);
    match name.chars().count() {
        0 => Some(format!("{place} is empty: it has letters, digits, _ and -")),
        1..=NAME_CHARS if reserved => {
            Some(format!("{place} is the name of a part of every team: {name}"))
        }
        1..=NAME_CHARS => None,
        _ => Some(format!("{place} has more than {NAME_CHARS} characters: {name}")),
    }
}

fn bad_text(place: &str, text: &str) -> Option<String> {
    match text.chars().count() {
        0 => Some(format!("{place} is empty")),
        1..=TEXT_CHARS => None,
        _ => Some(format!("{place} has more than {TEXT_CHARS} characters")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, servers: &[&str]) -> TeamMember {
        TeamMember {
            name: name.into(),
            role: "reader".into(),
            goal: format!("finds what {name} needs"),
            servers: servers.iter().map(|server| (*server).to_owned()).collect(),
        }
    }

    fn design(agents: Vec<TeamMember>) -> TeamDesign {
        TeamDesign { name: "research".into(), description: "Answers.".into(), agents }
    }

    /// S1.10
    #[test]
    fn a_refused_design_lists_each_of_its_faults_with_the_fix() {
        let servers = Material {
            servers: ["files", "notes"].map(str::to_owned).into(),
            ..Material::default()
        };
        let good =
            design(vec![member("reader", &["files"]), member("keeper", &["notes", "files"])]);
        assert_eq!(good.problems(&servers), Vec::<String>::new());

        let agents = vec![
            member("reader", &["fiels"]),
            member("Reader", &[]),
            member("qa", &["files", "files"]),
            member("", &["a", "b", "c", "d"]),
        ];
        let problems = design(agents).problems(&servers).join("\n");
        for content in [
            "agents[0].servers names a server that is not there (did you mean files?); the servers are files, notes: fiels",
            "agents[1].name: another agent has this name: Reader",
            "agents[1].servers is empty",
            "agents[2].name is the name of a part of every team: qa",
            "agents[2].servers names a server twice: files",
            "agents[3].name is empty",
            "4 servers are no single purpose",
        ] {
            assert!(problems.contains(content), "{content} is not in:\n{problems}");
        }
        let members = (0..9).map(|number| member(&format!("a{number}"), &["files"])).collect();
        assert!(design(members).problems(&servers)[0].contains("at most 8"));
        assert!(design(Vec::new()).problems(&servers)[0].contains("at least one"));
    }

    /// S1.10
    #[test]
    fn a_team_may_work_for_another_but_not_for_itself_and_not_too_deep() {
        let team = |name: &str, servers: &[&str]| TeamDesign {
            name: name.into(),
            ..design(vec![member("helper", servers)])
        };
        let kept = |teams: &[TeamDesign]| Material {
            servers: vec!["files".into()],
            teams: teams.iter().map(|team| (team.name.clone(), team.clone())).collect(),
        };
        let material = kept(&[team("c", &["files"]), team("b", &["team_c"])]);
        assert_eq!(team("a", &["team_b"]).problems(&material), Vec::<String>::new());
        let own = team("a", &["team_a"]).problems(&material);
        assert!(own.last().unwrap().ends_with("leads back: a → a"), "{own:?}");
        let round = team("c", &["team_b"]).problems(&material);
        assert!(round[0].ends_with("leads back: c → b → c"), "{round:?}");
        let material =
            kept(&[team("c", &["files"]), team("b", &["team_c"]), team("a", &["team_b"])]);
        let deep = team("top", &["team_a"]).problems(&material);
        assert!(deep[0].ends_with("3 deep within each other: top → a → b → c"), "{deep:?}");
        let both = team("top", &["team_c", "files"]).problems(&material);
        assert!(both[0].contains("a team works alone"), "{both:?}");
        let names: Vec<_> =
            team("top", &["team_c"]).agents[0].nodes().map(|(name, _)| name).collect();
        assert_eq!(names, ["team_c"]);
    }

    #[test]
    fn names_are_unchanged_except_for_invalid_characters() {
        for (name, kept) in [
            ("Weekly-report", "Weekly-report"),
            (" release notes ", "release_notes"),
            ("team_research", "research"),
            ("é|!", ""),
        ] {
            assert_eq!(clean_name(name), kept);
        }
        let design = design(vec![member("a b", &["mcp_agent_files"])]).cleaned();
        assert_eq!(design.agents[0].name, "a_b");
        assert_eq!(design.agents[0].servers, ["files"]);
    }

    #[test]
    fn an_agent_with_several_servers_is_listed_once_for_each() {
        let member = member("reader", &["files", "notes"]);
        let names: Vec<String> = member.nodes().map(|(name, _)| name).collect();
        assert_eq!(names, ["reader_files", "reader_notes"]);
    }
}
