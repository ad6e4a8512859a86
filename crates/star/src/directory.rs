//! Finds agents and tools by what they are said to do.

use perihelion_recall::WordIndex;

use super::AGENT_PREFIX;
use super::agent::AgentCard;
use perihelion_mcp::ToolDefinition;

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
    index: WordIndex,
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
    pub(super) fn of<'a>(agents: impl IntoIterator<Item = &'a AgentCard>) -> Self {
        let mut directory = Self::default();
        for card in agents {
            let name = card.name.strip_prefix(AGENT_PREFIX).unwrap_or(&card.name);
            let words: [(f64, &str); 2] = [(AGENT, name), (AGENT, &card.capabilities)];
            directory.add(&card.name, None, &words);
            for (number, tool) in card.tools.iter().enumerate().filter(|_| !card.open_world) {
                let of_agent = words.map(|(_, text)| (AGENT_OF_TOOL, text));
                let fields = [&of_agent[..], &tool_fields(tool)].concat();
                directory.add(&card.name, Some(number), &fields);
            }
        }
        directory
    }

    fn add(&mut self, agent: &str, tool: Option<usize>, fields: &[(f64, &str)]) {
        self.index.add(fields);
        self.owners.push((agent.to_owned(), tool));
    }

    /// Returns the agents that fit a query, best first, each judged by the best that is said of it.
    pub(super) fn find(&self, query: &[(f64, &str)]) -> Vec<Fit> {
        let mut found: Vec<Fit> = Vec::new();
        for hit in self.index.rank(query) {
            let Some((agent, tool)) = self.owners.get(hit.item as usize) else { continue };
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
pub(super) struct Tools(WordIndex);

impl Tools {
    pub(super) fn of(tools: &[ToolDefinition]) -> Self {
        let mut index = WordIndex::default();
        for tool in tools {
            index.add(&tool_fields(tool));
        }
        Self(index)
    }

    /// Returns the numbers of the tools that fit a query, best first.
    pub(super) fn find(&self, query: &str) -> Vec<usize> {
        self.0.rank(&[(1.0, query)]).into_iter().map(|hit| hit.item as usize).collect()
    }

    /// Returns the numbers of all tools, those that fit a query first.
    pub(super) fn order(&self, query: &str) -> Vec<usize> {
        let found = self.find(query);
        let rest: Vec<usize> = (0..self.0.len()).filter(|tool| !found.contains(tool)).collect();
        [found, rest].concat()
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

    fn card(name: &str, description: &str, tools: &[(&str, &str)]) -> AgentCard {
        let tool = |(name, description): &(&str, &str)| ToolDefinition {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            input_schema: json!({ "type": "object", "properties": { "carrier": {} } }).into(),
            ..ToolDefinition::default()
        };
        AgentCard {
            name: format!("{AGENT_PREFIX}{name}"),
            capabilities: description.to_owned(),
            tools: tools.iter().map(tool).collect(),
            ..AgentCard::default()
        }
    }

    fn found(agents: &[AgentCard], query: &str) -> Vec<(String, Vec<usize>)> {
        let directory = Directory::of(agents);
        let found = directory.find(&[(1.0, query)]);
        found.into_iter().map(|fit| (fit.agent, fit.tools)).collect()
    }

    #[test]
    fn an_agent_is_found_by_one_of_many_tools_and_by_its_own_words() {
        let agents = [
            card(
                "shipping",
                "Parcels.",
                &[("print_label", "Prints."), ("trackParcel", "Where it is.")],
            ),
            card("weather", "Forecasts for cities.", &[("forecast", "Of the next days.")]),
        ];
        let shipping = ("mcp_agent_shipping".to_owned(), vec![1, 0]);
        assert_eq!(found(&agents, "Track my parcel"), [shipping]);
        assert_eq!(found(&agents, "weather in many cities")[0].0, "mcp_agent_weather");
        assert_eq!(found(&agents, "which carrier")[0].1.len(), 1, "by an argument's name");
        assert!(found(&agents, "an mcp agent").is_empty(), "every name begins so");
    }

    /// S1.09, X6
    #[test]
    fn what_strangers_say_of_their_tools_moves_nobody_into_the_menu() {
        let pages = card("pages", "Reads pages.", &[("invoice_paid_weather", "invoice invoice")]);
        let agents = [AgentCard { open_world: true, ..pages }];
        assert!(found(&agents, "pay the invoice").is_empty());
        assert_eq!(found(&agents, "read a page").len(), 1);
    }
}
