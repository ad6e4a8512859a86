//! Finds agents and tools by their descriptions.
//!
//! The selection of tools is not recorded. The tools are noted when the work begins and the queries are in the recorded
//! answers, so repeated work gets the same selection.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::tool_names::{FIND_TOOL, ToolNames};
use crate::{AGENT_PREFIX, AgentCard, window::clip};
use perihelion_mcp::ToolDefinition;
use perihelion_recall::WordIndex;

/// Weights of the parts of a tool's definition, relative to its description.
const TOOL_NAME: f64 = 3.0;
const TITLE: f64 = 2.0;
const ARGUMENT: f64 = 0.5;

/// How much the words of an agent count for itself, and for each of its tools.
const AGENT: f64 = 2.0;
const AGENT_OF_TOOL: f64 = 0.5;

/// All agents, by their own descriptions and those of their tools.
///
/// For an open-world server, only the operator's words are indexed, as in the catalog: third-party tool descriptions
/// must not influence the choice of agents.
#[derive(Debug, Default)]
pub(super) struct Directory {
    index: WordIndex,
    /// The owner of each text: an agent, or one of its tools.
    owners: Vec<(String, Option<usize>)>,
}

/// An agent that fits, with its matching tools, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    pub agent: String,
    pub tools: Vec<usize>,
}

impl Directory {
    /// Makes the directory of agents; equal results keep the given order.
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

    /// Returns the agents that fit a query, best first, each by its best matching text.
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

/// Tools that one search finds at most.
const FOUND: usize = 8;

/// Characters of a tool's description in the index; its definition has the full text.
const DESCRIPTION_CHARS: usize = 200;

/// The tools that are shown, while not all are.
pub(super) struct ToolSearch {
    index: WordIndex,
    shown: BTreeSet<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchQuery {
    query: String,
}

impl ToolSearch {
    /// Selects of more than `most` tools those that fit the task best; `None` if there are not that many.
    pub(super) fn new(tools: &[ToolDefinition], most: usize, task: &str) -> Option<Self> {
        if tools.len() <= most {
            return None;
        }
        let mut index = WordIndex::default();
        for tool in tools {
            index.add(&tool_fields(tool));
        }
        let mut search = Self { index, shown: BTreeSet::new() };
        let found = search.fitting(task);
        let rest: Vec<usize> = (0..tools.len()).filter(|tool| !found.contains(tool)).collect();
        search.shown = found.into_iter().chain(rest).take(most).collect();
        Some(search)
    }

    /// Returns the numbers of the tools that fit a query, best first.
    fn fitting(&self, query: &str) -> Vec<usize> {
        self.index.rank(&[(1.0, query)]).into_iter().map(|hit| hit.item as usize).collect()
    }

    pub(super) fn shows(&self, tool: usize) -> bool {
        self.shown.contains(&tool)
    }

    /// Finds tools and shows them from now on.
    pub(super) fn find(
        &mut self,
        arguments: &Value,
        tools: &[ToolDefinition],
        names: &ToolNames,
    ) -> Result<String, String> {
        let wanted: SearchQuery = serde_json::from_value(arguments.clone()).map_err(|error| {
            format!("the arguments of {FIND_TOOL} do not fit its schema: {error}")
        })?;
        let found: Vec<usize> = self.fitting(&wanted.query).into_iter().take(FOUND).collect();
        if found.is_empty() {
            return Ok(format!(
                "No tool of the server speaks of this: {}. Other words may find one.",
                clip(&wanted.query, DESCRIPTION_CHARS)
            ));
        }
        let names: Vec<&str> = names.iter().collect();
        let line = |number: &usize| {
            let tool = tools.get(*number)?;
            let name = names.get(*number)?;
            Some(format!("- {name}: {}", clip(tool.description.trim(), DESCRIPTION_CHARS)))
        };
        let lines: Vec<String> = found.iter().filter_map(line).collect();
        self.shown.extend(found);
        Ok(format!("These can be called from now on, best first:\n{}", lines.join("\n")))
    }
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
    fn descriptions_by_untrusted_servers_move_no_agent_into_the_catalog() {
        let pages = card("pages", "Reads pages.", &[("invoice_paid_weather", "invoice invoice")]);
        let agents = [AgentCard { open_world: true, ..pages }];
        assert!(found(&agents, "pay the invoice").is_empty());
        assert_eq!(found(&agents, "read a page").len(), 1);
    }
}

#[cfg(test)]
mod tool_search_tests {
    use serde_json::json;

    use super::*;

    fn tools(count: usize) -> Vec<ToolDefinition> {
        let tool = |number: usize| ToolDefinition {
            name: format!("tool{number}"),
            description: format!("Works on subject{number}."),
            input_schema: json!({ "type": "object" }).into(),
            ..ToolDefinition::default()
        };
        (0..count).map(tool).collect()
    }

    #[test]
    fn few_tools_are_all_shown_and_of_many_only_the_best_matches() {
        assert!(ToolSearch::new(&tools(25), 25, "t").is_none());
        let tools = tools(60);
        let names = ToolNames::new(&tools);
        let mut search = ToolSearch::new(&tools, 3, "Work on subject41 now").unwrap();
        let shown =
            |search: &ToolSearch| (0..60).filter(|tool| search.shows(*tool)).collect::<Vec<_>>();
        assert_eq!(shown(&search).len(), 3);
        assert!(search.shows(41));
        let reported = search.find(&json!({ "query": "subject57" }), &tools, &names).unwrap();
        assert!(reported.contains("best first:\n- tool57: Works on subject57."), "{reported}");
        assert!(search.shows(57) && search.shows(41), "what was shown stays");
        assert!(shown(&search).len() <= 3 + FOUND);
    }

    #[test]
    fn an_empty_or_invalid_search_is_answered_with_the_fix() {
        let tools = tools(4);
        let names = ToolNames::new(&tools);
        let mut search = ToolSearch::new(&tools, 2, "t").unwrap();
        let nothing = search.find(&json!({ "query": "weather" }), &tools, &names).unwrap();
        assert_eq!(
            nothing,
            "No tool of the server speaks of this: weather. Other words may find one."
        );
        let problem = search.find(&json!({ "name": "x" }), &tools, &names).unwrap_err();
        assert!(problem.contains("unknown field `name`"), "{problem}");
    }
}
