//! Names of tools as models accept them: MCP allows more than the Chat Completions API does.

use super::built_in::is_built_in;
use perihelion_mcp::ToolDefinition;

/// Longest name of a function in a model request.
const MAX_CHARS: usize = 64;

/// The names under which a server's tools are shown to the model, in the order of the tools.
#[derive(Debug)]
pub(super) struct ToolNames(Vec<String>);

impl ToolNames {
    /// Keeps names that are fit, and makes the others so; each is unique and none is a built-in tool's.
    pub(super) fn new(tools: &[ToolDefinition]) -> Self {
        let mut shown: Vec<Option<String>> =
            tools.iter().map(|tool| is_fit(&tool.name).then(|| tool.name.clone())).collect();
        for (index, tool) in tools.iter().enumerate().filter(|(_, tool)| !is_fit(&tool.name)) {
            let mut name = made_fit(&tool.name);
            let is_taken = |name: &str| shown.iter().flatten().any(|other| other == name);
            if name.len() > MAX_CHARS || is_built_in(&name) || is_taken(&name) {
                // The hash of the whole name is as good as unique, and the same in every process.
                let hash = blake3::hash(tool.name.as_bytes()).to_hex();
                name.truncate(MAX_CHARS - 9);
                name = format!("{name}_{}", &hash[..8]);
            }
            shown[index] = Some(name);
        }
        Self(shown.into_iter().flatten().collect())
    }

    /// Iterates over the names as shown.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the tool that a model means by a name.
    pub(super) fn find<'t>(
        &self,
        name: &str,
        tools: &'t [ToolDefinition],
    ) -> Option<&'t ToolDefinition> {
        let index = self.0.iter().position(|shown| shown == name);
        index
            .and_then(|index| tools.get(index))
            .or_else(|| tools.iter().find(|tool| tool.name == name && !is_built_in(name)))
    }
}

fn is_allowed(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

fn is_fit(name: &str) -> bool {
    (1..=MAX_CHARS).contains(&name.len()) && name.chars().all(is_allowed) && !is_built_in(name)
}

fn made_fit(name: &str) -> String {
    name.chars().map(|letter| if is_allowed(letter) { letter } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_in::{NOT_MINE, READ_ARTIFACT};

    fn tool(name: &str) -> ToolDefinition {
        serde_json::from_value(serde_json::json!({ "name": name, "input_schema": {} })).unwrap()
    }

    #[test]
    fn names_that_models_refuse_are_made_fit_unique_and_lead_back() {
        let long = "x".repeat(100);
        let tools: Vec<ToolDefinition> =
            ["files/read", "files_read", "lies das Buch", READ_ARTIFACT, &long, "größe", NOT_MINE]
                .map(tool)
                .into();
        let names = ToolNames::new(&tools);
        let shown: Vec<&str> = names.iter().collect();
        assert!(shown.iter().all(|name| is_fit(name)), "{shown:?}");
        assert_eq!(shown[1], "files_read");
        assert!(shown[0].starts_with("files_read_"), "{shown:?}");
        assert_eq!(shown[2], "lies_das_Buch");
        assert_eq!(shown[5], "gr__e");
        for (tool, name) in tools.iter().zip(&shown) {
            assert_eq!(names.find(name, &tools).unwrap().name, tool.name);
        }
        assert_eq!(names.find("files/read", &tools).unwrap().name, "files/read");
        assert!(names.find("other", &tools).is_none());
        assert!(names.find(NOT_MINE, &tools).is_none(), "the agent's own tool is meant");
    }
}
