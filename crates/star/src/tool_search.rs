//! Of a server's many tools those that an agent is shown: the ones that fit its task, and what it finds besides.
//!
//! Nothing here is recorded: the server's tools are noted when the work begins and the queries stand in the model's
//! recorded answers, so that work that is done again shows the same.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::built_in::FIND_TOOL;
use super::directory::Tools;
use super::tool_names::ToolNames;
use super::window::clip;
use perihelion_mcp::ToolDefinition;

/// Tools that one search finds at most.
const FOUND: usize = 8;

/// Characters of a tool's description where it is found; the whole stands in its definition.
const DESCRIPTION_CHARS: usize = 200;

/// The tools that are shown, while not all are.
pub(super) struct ToolSearch {
    tools: Tools,
    shown: BTreeSet<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    query: String,
}

impl ToolSearch {
    /// Shows of more than `most` tools those that fit the task best; `None` where there are not so many.
    pub(super) fn new(tools: &[ToolDefinition], most: usize, task: &str) -> Option<Self> {
        if tools.len() <= most {
            return None;
        }
        let index = Tools::of(tools);
        let shown = index.order(task).into_iter().take(most).collect();
        Some(Self { tools: index, shown })
    }

    pub(super) fn shows(&self, tool: usize) -> bool {
        self.shown.contains(&tool)
    }

    /// Finds tools and shows them from now on.
    ///
    /// # Errors
    /// A sentence for the model.
    pub(super) fn find(
        &mut self,
        arguments: &Value,
        tools: &[ToolDefinition],
        names: &ToolNames,
    ) -> Result<String, String> {
        let wanted: Wanted = serde_json::from_value(arguments.clone()).map_err(|error| {
            format!("the arguments of {FIND_TOOL} do not fit its schema: {error}")
        })?;
        let found: Vec<usize> = self.tools.find(&wanted.query).into_iter().take(FOUND).collect();
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
    fn few_tools_are_all_shown_and_of_many_those_that_fit() {
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
    fn a_search_that_finds_nothing_or_is_none_is_told_with_the_way_out() {
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
