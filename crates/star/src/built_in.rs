//! The tools that every agent has of its own; a server's tools never show under these names.

use serde_json::json;

use perihelion_llm::ToolSpec;

/// Reads a piece of an artifact.
pub(super) const READ_ARTIFACT: &str = "perihelion_read_artifact";

/// Finds tools of an agent that has too many to be shown all.
pub(super) const FIND_TOOL: &str = "perihelion_find_tool";

/// Hands a task back that is for another agent.
pub(super) const NOT_MINE: &str = "perihelion_not_mine";

/// Tells whether a name is that of an agent's own tool, which no server is called for.
pub fn is_built_in(tool: &str) -> bool {
    [READ_ARTIFACT, FIND_TOOL, NOT_MINE].contains(&tool)
}

/// Returns the definition of the tool that hands a task back.
pub(super) fn not_mine() -> ToolSpec {
    ToolSpec {
        name: NOT_MINE.to_owned(),
        description: "Hands the task back because it is not for this agent: none of its tools is made for what the \
                      task asks. Ends your work at once."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "reason": {
                    "type": "string",
                    "description": "What the task needs that your tools are not made for."
                },
            },
            "required": ["reason"],
            "additionalProperties": false,
        }),
    }
}

/// Returns the definition of the tool that finds others.
pub(super) fn find_tool(tools: usize) -> ToolSpec {
    ToolSpec {
        name: FIND_TOOL.to_owned(),
        description: format!(
            "Searches all {tools} tools of the server, of which you see those that fit the task best. What it finds \
             can be called from your next answer on. Counts as one of your calls."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "A few words that say what the tool is to do."
                },
            },
            "required": ["query"],
            "additionalProperties": false,
        }),
    }
}
