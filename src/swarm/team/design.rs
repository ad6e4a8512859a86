//! The design of a team, and what makes it acceptable.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TEAM_PREFIX;
use crate::config::strict::nearest;
use crate::swarm::search::FIND_AGENT;
use crate::swarm::{AGENT_PREFIX, node_names};

/// Agents of one team; more of them are no team that one supervisor has an overview of.
const MAX_AGENTS: usize = 8;

/// Servers of one agent; more of them are no single purpose.
const MAX_SERVERS: usize = 3;

/// Characters of a name.
const NAME_CHARS: usize = 48;

/// Characters of a description, a role or a goal.
const TEXT_CHARS: usize = 1_000;

/// What the architect answers, under the schema name `team_design`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TeamDesign {
    /// A short name of letters, digits, `_` and `-`.
    pub name: String,
    /// What the team is for, in a sentence: its line in the supervisor's menu.
    pub description: String,
    /// The team's agents, each with one purpose.
    pub agents: Vec<TeamMember>,
}

/// One agent of a team.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TeamMember {
    /// A short name, unique in the team.
    pub name: String,
    /// What it is, in a few words.
    pub role: String,
    /// What it is to achieve, in a sentence.
    pub goal: String,
    /// The servers whose tools it works with, by their names in the catalogue.
    pub servers: Vec<String>,
}

/// A version of a team.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Team {
    /// Counted from 1.
    pub version: u32,
    pub design: TeamDesign,
}

impl Team {
    /// Returns the name by which the supervisor chooses it, and of its node.
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
    /// Returns the design with its names in the form that they are kept in.
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

    /// Returns what is wrong with the design, by what servers there are; empty where nothing is.
    pub fn problems(&self, servers: &[String]) -> Vec<String> {
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
        let (mut names, mut goals) = (BTreeSet::new(), BTreeSet::new());
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
            problems.extend(agent.problems(&place, servers));
        }
        problems
    }
}

impl TeamMember {
    /// Returns what is wrong with the servers.
    fn problems(&self, place: &str, servers: &[String]) -> Vec<String> {
        let mut problems = Vec::new();
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
                let hint = nearest(server, known.clone());
                let hint = hint.map_or_else(String::new, |best| format!(" (did you mean {best}?)"));
                let known = match servers {
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

    /// Returns the agents that stand for it: itself, or where it has several servers one for each.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (String, &String)> {
        let is_one = self.servers.len() == 1;
        self.servers.iter().map(move |server| match is_one {
            true => (self.name.clone(), server),
            false => (format!("{}_{server}", self.name), server),
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
    fn a_design_is_refused_for_every_fault_that_it_has_with_the_way_out() {
        let servers = ["files".to_owned(), "notes".to_owned()];
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
        for said in [
            "agents[0].servers names a server that is not there (did you mean files?); the servers are files, notes: fiels",
            "agents[1].name: another agent has this name: Reader",
            "agents[1].servers is empty",
            "agents[2].name is the name of a part of every team: qa",
            "agents[2].servers names a server twice: files",
            "agents[3].name is empty",
            "4 servers are no single purpose",
        ] {
            assert!(problems.contains(said), "{said} is not in:\n{problems}");
        }
        let crowd = (0..9).map(|number| member(&format!("a{number}"), &["files"])).collect();
        assert!(design(crowd).problems(&servers)[0].contains("at most 8"));
        assert!(design(Vec::new()).problems(&servers)[0].contains("at least one"));
    }

    #[test]
    fn names_are_kept_as_they_are_but_for_what_no_name_may_have() {
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
    fn an_agent_with_several_servers_stands_as_one_for_each() {
        let member = member("reader", &["files", "notes"]);
        let names: Vec<String> = member.nodes().map(|(name, _)| name).collect();
        assert_eq!(names, ["reader_files", "reader_notes"]);
    }
}
