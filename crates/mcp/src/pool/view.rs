//! The status of a server, available at any time without waiting, and in one line of the supervisor's catalog.

use std::sync::Arc;

use crate::catalog::listing::Listing;
use crate::types::{Error, Phase, ServerInfo, text};

/// The status of a server, available at any time without waiting.
#[derive(Default)]
pub(super) struct View {
    tools: Tools,
    attempt: Attempt,
}

#[derive(Default)]
enum Tools {
    #[default]
    Unknown,
    /// The tools of the previous server under this name, until this one has listed its own.
    Before(Arc<Listing>),
    /// Its own tools, from its last list, now or at an earlier time.
    Own(Arc<Listing>),
}

#[derive(Default)]
enum Attempt {
    #[default]
    Untried,
    Running,
    /// It was running, and ended or was stopped.
    Stopped,
    /// It could not be started, or is not to be called; why.
    Failed(String),
}

impl View {
    pub fn own_tools(&self) -> Option<&Arc<Listing>> {
        match &self.tools {
            Tools::Own(listing) => Some(listing),
            Tools::Before(_) | Tools::Unknown => None,
        }
    }

    /// Returns its tools in the catalog: its own, or until then those of the previous server.
    pub fn shown(&self) -> Option<&Arc<Listing>> {
        match &self.tools {
            Tools::Own(listing) | Tools::Before(listing) => Some(listing),
            Tools::Unknown => None,
        }
    }

    pub fn remember(&mut self, listing: Arc<Listing>) {
        self.tools = Tools::Own(listing);
    }

    /// Takes the tools of the server before it under this name.
    pub fn stand_in(&mut self, before: Arc<Listing>) {
        if self.own_tools().is_none() {
            self.tools = Tools::Before(before);
        }
    }

    pub fn run(&mut self, listing: Arc<Listing>) {
        self.tools = Tools::Own(listing);
        self.attempt = Attempt::Running;
    }

    /// Notes that its connection ended; the reason of a failure stays.
    pub fn stop(&mut self) {
        if matches!(self.attempt, Attempt::Running) {
            self.attempt = Attempt::Stopped;
        }
    }

    /// Notes that it could not be started, or is not to be called.
    pub fn fail(&mut self, error: &Error) {
        self.attempt = Attempt::Failed(error.to_string());
        let is_known = matches!(self.tools, Tools::Own(_));
        // What it was trusted to say is not what would be called.
        if !is_known || error.is_quarantine() {
            self.tools = Tools::Unknown;
        }
    }

    pub fn failure(&self) -> Option<&str> {
        match &self.attempt {
            Attempt::Failed(reason) => Some(reason),
            Attempt::Untried | Attempt::Running | Attempt::Stopped => None,
        }
    }

    /// Returns whether the connection is open; `None` before the first attempt, and while it is stopped on purpose.
    pub fn stands(&self) -> Option<bool> {
        match self.attempt {
            Attempt::Running => Some(true),
            Attempt::Failed(_) => Some(false),
            Attempt::Untried | Attempt::Stopped => None,
        }
    }

    pub fn phase(&self) -> Phase {
        match &self.attempt {
            Attempt::Running => Phase::Running,
            Attempt::Failed(_) => Phase::Failed,
            _ if self.own_tools().is_none() => Phase::New,
            Attempt::Stopped => Phase::Stopped,
            Attempt::Untried => Phase::Cached,
        }
    }
}

/// One line at about 40 tokens.
const LINE_CHARS: usize = 200;
const DESCRIPTION_CHARS: usize = 90;

/// Returns the name of the agent that is made of a server: `mcp_agent_<name>`.
pub fn agent_name(server: &str) -> String {
    format!("mcp_agent_{server}")
}

/// Describes a server in one line: `mcp_agent_<name>: description; tools: a, b, c…`, the tools of these numbers first.
///
/// It contains the server's text unchanged, shortened to one line; the prompt escapes it.
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
    use crate::catalog::listing_tests::empty as listing;

    fn failure() -> Error {
        Error::Start { server: "x".into(), reason: "it is not there".into() }
    }

    #[test]
    fn a_server_shows_the_outcome_of_its_connection_and_a_failed_one_until_it_runs_again() {
        let mut view = View::default();
        assert_eq!((view.phase(), view.stands()), (Phase::New, None));
        view.remember(listing());
        assert_eq!((view.phase(), view.stands()), (Phase::Cached, None));
        view.stop();
        assert_eq!(view.phase(), Phase::Cached, "it never ran");
        view.run(listing());
        assert_eq!((view.phase(), view.stands()), (Phase::Running, Some(true)));
        view.stop();
        assert_eq!((view.phase(), view.stands()), (Phase::Stopped, None));
        view.fail(&failure());
        view.stop();
        assert_eq!((view.phase(), view.stands()), (Phase::Failed, Some(false)));
        assert!(view.failure().is_some_and(|reason| reason.contains("not there")));
        assert!(view.own_tools().is_some(), "its agent stays");
        view.run(listing());
        assert_eq!((view.phase(), view.failure()), (Phase::Running, None));
    }

    #[test]
    fn the_catalog_shows_the_last_known_tools_of_a_server_until_it_lists_new_ones_or_fails() {
        let mut view = View::default();
        view.stand_in(listing());
        assert!(view.shown().is_some() && view.own_tools().is_none());
        assert_eq!(view.phase(), Phase::New);
        view.fail(&failure());
        assert!(view.shown().is_none());
        view.remember(listing());
        view.stand_in(listing());
        assert!(view.own_tools().is_some(), "its own go before");
        let quarantined = Error::Quarantined { server: "x".into(), reason: "other tools".into() };
        view.fail(&quarantined);
        assert!(view.shown().is_none(), "what it was trusted to say is not what would be called");
    }
}

#[cfg(test)]
mod menu_tests {
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
    fn a_server_is_one_catalog_line_with_its_first_tools() {
        assert_eq!(
            menu_line(&info("Reads files.\nSecond line", &["list", "read"]), &[]),
            "mcp_agent_files: Reads files. Second line; tools: list, read"
        );
        assert_eq!(menu_line(&info("", &[]), &[]), "mcp_agent_files: tools: none");
    }

    #[test]
    fn tools_that_match_the_task_come_first() {
        let line = menu_line(&info("", &["list", "read", "write"]), &[2, 1, 7]);
        assert_eq!(line, "mcp_agent_files: tools: write, read, list");
    }

    /// X6
    #[test]
    fn the_catalog_describes_an_open_world_server_only_in_the_words_of_the_operator() {
        let info = ServerInfo { open_world: true, ..info("Reads pages", &["call_append_now"]) };
        assert_eq!(menu_line(&info, &[0]), "mcp_agent_files: Reads pages; reaches the open world");
    }

    /// X6
    #[test]
    fn the_catalog_marks_a_server_that_is_not_declared() {
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
