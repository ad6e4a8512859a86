//! How a run is shown to the one who asked.

use std::io::IsTerminal as _;
use std::sync::Arc;

use super::globals::quoted;
use perihelion_engine::graph::RunEvent;
use perihelion_engine::ids::ThreadId;
use perihelion_star::GraphState;

/// Sees every event of a run before it is shown.
pub type Observer = Arc<dyn Fn(&RunEvent<GraphState>) + Send + Sync>;

/// How a run is shown.
#[derive(Clone)]
pub struct Show {
    /// Print the report as one JSON object in place of the answer.
    pub json: bool,
    /// Add the events to that object.
    pub events: bool,
    /// Print the events as lines of JSON while they happen.
    pub lines: bool,
    /// The answer was to be JSON of a schema.
    pub structured: bool,
    /// Add the first table that was found to that object.
    pub include_data: bool,
    /// Show tables and charts where standard output is no terminal, too.
    pub found: bool,
    /// Show no progress.
    pub quiet: bool,
    /// Leave every line of progress in sight on a terminal.
    pub every_line: bool,
    /// How the program was called, with its global options: the beginning of commands to be typed next.
    pub invocation: String,
    /// The thread as the user named it, where they did.
    pub name: Option<String>,
    pub observer: Option<Observer>,
}

impl Show {
    /// Shows the answer and the progress, and nothing special.
    pub fn new(invocation: String) -> Self {
        Self {
            json: false,
            events: false,
            lines: false,
            structured: false,
            include_data: false,
            every_line: false,
            found: false,
            quiet: false,
            invocation,
            name: None,
            observer: None,
        }
    }

    /// Returns how commands that are to be typed next name the thread: as the user did.
    pub(super) fn called(&self, thread: ThreadId) -> String {
        self.name.as_deref().map_or_else(|| thread.to_string(), quoted)
    }

    /// Tells whether a person sits there who can be asked.
    pub(super) fn can_ask(&self) -> bool {
        let is_shown = !self.json && !self.quiet;
        is_shown && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }
}
