//! What a decision of the supervisor may choose from, and what is wrong with any other choice.

use super::AGENT_PREFIX;
use super::FIND_AGENT;
use super::menu::Menu;
use super::searched;
use super::state::GraphState;
use perihelion_settings::config::strict::nearest;

/// What a decision may choose from.
#[derive(Debug)]
pub(super) struct Choices<'a> {
    menu: &'a Menu,
    /// Searches that the turn may still have.
    searches: usize,
    /// Agents with tasks that they handed back in this turn, and why.
    handed_back: Vec<(&'a str, &'a str, &'a str)>,
}

impl<'a> Choices<'a> {
    pub(super) fn of(menu: &'a Menu, state: &'a GraphState) -> Self {
        let handed_back = state.results_of_turn().filter(|result| result.not_mine);
        let handed_back = handed_back.map(|result| {
            let why = result.error_message().unwrap_or_default();
            (result.agent.as_str(), result.task.trim(), why)
        });
        Self { menu, searches: searched::left(state), handed_back: handed_back.collect() }
    }

    /// Tells whether a name is that of the search, which there is where agents are hidden.
    pub(super) fn is_search(&self, name: &str) -> bool {
        name.trim() == FIND_AGENT && !self.menu.hidden.is_empty()
    }

    /// Returns how many searches the turn may still have.
    pub(super) fn searches(&self) -> usize {
        self.searches
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let shown = self.menu.shown.iter().map(|(name, _)| name.as_str());
        shown.chain(self.menu.hidden.iter().map(String::as_str))
    }

    /// Returns the name that the menu has for what a decision wrote: the same, or the one it left the prefix off.
    pub(super) fn full_name<'n>(&'n self, written: &'n str) -> &'n str {
        let written = written.trim();
        if self.names().any(|known| known == written) {
            return written;
        }
        self.names()
            .find(|known| known.strip_prefix(AGENT_PREFIX) == Some(written))
            .unwrap_or(written)
    }

    /// Returns what is wrong with a name.
    pub(super) fn unknown(&self, name: &str) -> Option<String> {
        if self.names().any(|known| known == name) {
            return None;
        }
        if self.menu.shown.is_empty() {
            return Some(format!("there is no agent named {name}; the menu is empty: choose qa"));
        }
        let hint = nearest(name, self.names())
            .map_or_else(String::new, |best| format!(" (did you mean {best}?)"));
        let shown: Vec<&str> = self.menu.shown.iter().map(|(name, _)| name.as_str()).collect();
        let more = match self.menu.hidden.len() {
            0 => String::new(),
            more if self.searches > 0 => format!(", and {more} more that {FIND_AGENT} finds"),
            more => format!(", and {more} more"),
        };
        Some(format!(
            "there is no agent named {name}{hint}; the menu has: {}{more}",
            shown.join(", ")
        ))
    }

    /// Returns what is wrong with giving an agent a task that it handed back.
    pub(super) fn refused(&self, agent: &str, task: &str) -> Option<String> {
        let same = |(whose, what, _): &&(&str, &str, &str)| *whose == agent && *what == task.trim();
        let (.., why) = self.handed_back.iter().find(same)?;
        Some(format!(
            "{agent} handed this very task back ({why}): choose another agent, or change the task"
        ))
    }
}
