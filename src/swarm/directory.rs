//! Finds agents and tools by what they are said to do.

use std::sync::Arc;

use super::AGENT_PREFIX;
use super::index::{Fields, Index};
use crate::mcp::{ServerInfo, ToolDefinition};

/// How much the parts of a tool's definition count, beside its description.
const TOOL_NAME: f64 = 3.0;
const TITLE: f64 = 2.0;
const ARGUMENT: f64 = 0.5;

/// How much the words of an agent count for itself, and for each of its tools.
const AGENT: f64 = 2.0;
const AGENT_OF_TOOL: f64 = 0.5;

/// All agents, by their own words and by those of their tools.
///
/// Of a server of the open world the operator's words alone are known here, as in the menu: strangers who write tool
/// descriptions must not choose who is asked.
#[derive(Debug, Default)]
pub(super) struct Directory {
    index: Index,
    /// Whose each text is: an agent's own, or that of one of its tools.
    owners: Vec<(String, Option<usize>)>,
}

/// An agent that fits, with those of its tools that do, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    pub agent: String,
    pub tools: Vec<usize>,
}

impl Directory {
    /// Makes the directory of agents, given in the order in which equal ones are to stand.
    pub(super) fn of<'a>(
        agents: impl IntoIterator<Item = (&'a String, &'a Arc<ServerInfo>)>,
    ) -> Self {
        let mut directory = Self::default();
        for (agent, server) in agents {
            let name = agent.strip_prefix(AGENT_PREFIX).unwrap_or(agent);
            let words: [(f64, &str); 2] = [(AGENT, name), (AGENT, &server.description)];
            directory.add(agent, None, &words);
            for (number, tool) in server.tools.iter().enumerate().filter(|_| !server.open_world) {
                let of_agent = words.map(|(_, text)| (AGENT_OF_TOOL, text));
                let fields = [&of_agent[..], &tool_fields(tool)].concat();
                directory.add(agent, Some(number), &fields);
            }
        }
        directory
    }

    fn add(&mut self, agent: &str, tool: Option<usize>, fields: &Fields<'_>) {
        self.index.add(fields);
        self.owners.push((agent.to_owned(), tool));
    }

    /// Returns the agents that fit a query, best first, each judged by the best that is said of it.
    pub(super) fn find(&self, query: &Fields<'_>) -> Vec<Fit> {
        let mut found: Vec<Fit> = Vec::new();
        for hit in self.index.rank(query) {
            let Some((agent, tool)) = self.owners.get(hit.text) else { continue };
            let at = found.iter().position(|fit| fit.agent == *agent).unwrap_or_else(|| {
                found.push(Fit { agent: agent.clone(), tools: Vec::new() });
                found.len() - 1
            });
            found[at].tools.extend(tool);
        }
        found
    }
}

/// The tools of one agent, by what they are said to do.
#[derive(Debug, Default)]
pub(super) struct Tools(Index);

impl Tools {
    pub(super) fn of(tools: &[ToolDefinition]) -> Self {
        let mut index = Index::default();
        for tool in tools {
            index.add(&tool_fields(tool));
        }
        Self(index)
    }

    /// Returns the numbers of the tools that fit a query, best first.
    pub(super) fn find(&self, query: &str) -> Vec<usize> {
        self.0.rank(&[(1.0, query)]).into_iter().map(|hit| hit.text).collect()
    }

    /// Returns the numbers of all tools, those that fit a query first.
    pub(super) fn order(&self, query: &str) -> Vec<usize> {
        self.0.order(&[(1.0, query)])
    }
}

/// Returns the words of a tool: name, title, description, and the names of its arguments.
fn tool_fields(tool: &ToolDefinition) -> Vec<(f64, &str)> {
    let title = tool.title.as_deref().unwrap_or_default();
    let arguments = tool.input_schema["properties"].as_object();
    let arguments = arguments.into_iter().flat_map(|properties| properties.keys());
    [(TOOL_NAME, tool.name.as_str()), (TITLE, title), (1.0, tool.description.as_str())]
        .into_iter()
        .chain(arguments.map(|name| (ARGUMENT, name.as_str())))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(name: &str, description: &str, tools: &[(&str, &str)]) -> (String, Arc<ServerInfo>) {
        let tool = |(name, description): &(&str, &str)| ToolDefinition {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            input_schema: json!({ "type": "object", "properties": { "carrier": {} } }),
            ..ToolDefinition::default()
        };
        let info = ServerInfo {
            name: name.to_owned(),
            description: description.to_owned(),
            server_version: String::new(),
            protocol_version: String::new(),
            tools: tools.iter().map(tool).collect(),
            rejected_tools: Vec::new(),
            open_world: false,
        };
        (format!("{AGENT_PREFIX}{name}"), Arc::new(info))
    }

    fn found(agents: &[(String, Arc<ServerInfo>)], query: &str) -> Vec<(String, Vec<usize>)> {
        let directory = Directory::of(agents.iter().map(|(name, server)| (name, server)));
        let found = directory.find(&[(1.0, query)]);
        found.into_iter().map(|fit| (fit.agent, fit.tools)).collect()
    }

    #[test]
    fn an_agent_is_found_by_one_of_many_tools_and_by_its_own_words() {
        let agents = [
            server(
                "shipping",
                "Parcels.",
                &[("print_label", "Prints."), ("trackParcel", "Where it is.")],
            ),
            server("weather", "Forecasts for cities.", &[("forecast", "Of the next days.")]),
        ];
        let shipping = ("mcp_agent_shipping".to_owned(), vec![1, 0]);
        assert_eq!(found(&agents, "Track my parcel"), [shipping]);
        assert_eq!(found(&agents, "weather in many cities")[0].0, "mcp_agent_weather");
        assert_eq!(found(&agents, "which carrier")[0].1.len(), 1, "by an argument's name");
        assert!(found(&agents, "an mcp agent").is_empty(), "every name begins so");
    }

    /// X6
    #[test]
    fn what_strangers_say_of_their_tools_moves_nobody_into_the_menu() {
        let (name, info) =
            server("pages", "Reads pages.", &[("invoice_paid_weather", "invoice invoice")]);
        let agents = [(name, Arc::new(ServerInfo { open_world: true, ..(*info).clone() }))];
        assert!(found(&agents, "pay the invoice").is_empty());
        assert_eq!(found(&agents, "read a page").len(), 1);
    }
}
