//! Shows a server in one line of the supervisor's menu.

use crate::types::{ServerInfo, text};

/// One line at about 40 tokens.
const LINE_CHARS: usize = 200;
const DESCRIPTION_CHARS: usize = 90;

/// Returns the name of the agent that is made of a server: `mcp_agent_<name>`.
pub fn agent_name(server: &str) -> String {
    format!("mcp_agent_{server}")
}

/// Describes a server in one line: `mcp_agent_<name>: description; tools: a, b, c…`, the tools of these numbers first.
///
/// The server's words stand in it as they are, made one line and short; escaping is the prompt's part.
pub fn menu_line(info: &ServerInfo, first: &[usize]) -> String {
    let mut line = agent_name(&info.name);
    line.push(':');
    let description = text::one_line(&info.description);
    if !description.is_empty() {
        line.push(' ');
        line.push_str(text::cut(&description, DESCRIPTION_CHARS).trim_end_matches(['.', ';']));
        line.push(';');
    }
    if info.open_world {
        // The names of tools are words of the server, which must not reach the supervisor.
        line.push_str(" reaches the open world");
        return line;
    }
    if info.undeclared {
        line.push_str(" open world (not declared);");
    }
    line.push_str(" tools: ");
    let mut room = LINE_CHARS.saturating_sub(line.chars().count());
    let others = (0..info.tools.len()).filter(|number| !first.contains(number));
    let order = first.iter().copied().chain(others).filter_map(|number| info.tools.get(number));
    for (index, tool) in order.enumerate() {
        let name = text::one_line(&tool.name);
        let length = name.chars().count() + 2;
        if index > 0 {
            if length > room {
                line.push('…');
                return line;
            }
            line.push_str(", ");
        }
        line.push_str(&text::cut(&name, LINE_CHARS / 2));
        room = room.saturating_sub(length);
    }
    if info.tools.is_empty() {
        line.push_str("none");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ToolDefinition;

    fn info(description: &str, tools: &[&str]) -> ServerInfo {
        let tool = |name: &&str| ToolDefinition {
            name: (*name).to_owned(),
            input_schema: serde_json::json!({"type": "object"}).into(),
            ..ToolDefinition::default()
        };
        ServerInfo {
            name: "files".into(),
            description: description.into(),
            server_version: "files 1".into(),
            protocol_version: "2025-11-25".into(),
            tools: tools.iter().map(tool).collect(),
            rejected_tools: Vec::new(),
            open_world: false,
            undeclared: false,
            agent: Default::default(),
        }
    }

    /// S1.09: one line per agent.
    #[test]
    fn a_server_is_one_menu_line_with_its_first_tools() {
        assert_eq!(
            menu_line(&info("Reads files.\nSecond line", &["list", "read"]), &[]),
            "mcp_agent_files: Reads files. Second line; tools: list, read"
        );
        assert_eq!(menu_line(&info("", &[]), &[]), "mcp_agent_files: tools: none");
    }

    #[test]
    fn tools_that_fit_stand_first() {
        let line = menu_line(&info("", &["list", "read", "write"]), &[2, 1, 7]);
        assert_eq!(line, "mcp_agent_files: tools: write, read, list");
    }

    /// X6
    #[test]
    fn of_a_server_of_the_open_world_the_menu_holds_the_operators_words_alone() {
        let info = ServerInfo { open_world: true, ..info("Reads pages", &["call_append_now"]) };
        assert_eq!(menu_line(&info, &[0]), "mcp_agent_files: Reads pages; reaches the open world");
    }

    /// X6
    #[test]
    fn of_a_server_that_nobody_declared_the_menu_says_so() {
        let info = ServerInfo { undeclared: true, ..info("Reads pages", &["read"]) };
        let line = "mcp_agent_files: Reads pages; open world (not declared); tools: read";
        assert_eq!(menu_line(&info, &[]), line);
    }

    #[test]
    fn a_long_description_and_many_tools_are_cut_by_characters() {
        let tools = ["наименование_инструмента"; 60];
        let line = menu_line(&info(&"очень длинное описание ".repeat(50), &tools), &[]);
        assert!(line.ends_with("наименование_инструмента…"), "{line}");
        assert!(line.chars().count() <= LINE_CHARS + 1, "{line}");
    }
}
