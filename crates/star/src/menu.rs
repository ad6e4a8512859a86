//! The supervisor's agent catalog: all agents while there are few, otherwise matching and found agents, and the number
//! of hidden ones.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::state::{GraphState, Search};

/// Weight of earlier messages and plans, relative to the present request.
const BESIDES: f64 = 0.3;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Seen", into = "Seen")]
pub struct Menu {
    /// Name and line of each agent that is shown, by name.
    pub shown: Vec<(String, String)>,
    /// Names of the agents that could be chosen as well.
    pub hidden: Vec<String>,
}

impl Menu {
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty() && self.hidden.is_empty()
    }
}

/// A catalog in its recorded form; with few agents it has the form of earlier versions.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Seen {
    Whole(Vec<(String, String)>),
    Part { shown: Vec<(String, String)>, hidden: Vec<String> },
}

impl From<Seen> for Menu {
    fn from(seen: Seen) -> Self {
        match seen {
            Seen::Whole(shown) => Self { shown, hidden: Vec::new() },
            Seen::Part { shown, hidden } => Self { shown, hidden },
        }
    }
}

impl From<Menu> for Seen {
    fn from(Menu { shown, hidden }: Menu) -> Self {
        if hidden.is_empty() { Self::Whole(shown) } else { Self::Part { shown, hidden } }
    }
}

#[derive(Debug)]
pub(super) struct MenuQuery<'a> {
    pub tenant: &'a str,
    pub disabled: &'a [String],
    /// Agents that are always shown.
    pub kept: BTreeSet<&'a str>,
    /// Agents that were found recently; they replace agents that fit less.
    pub found: BTreeSet<&'a str>,
    /// The text that the shown agents should fit.
    pub query: Vec<(f64, &'a str)>,
    /// Recent searches; matching tools come first in their agents' lines.
    pub searched: Vec<(f64, &'a str)>,
}

impl<'a> MenuQuery<'a> {
    /// Reads the subject of the turn from the state, and its participants: agents that are preferred, have worked or
    /// will work in this turn, or are in the plan.
    pub(super) fn of(tenant: &'a str, state: &'a GraphState) -> Self {
        let mut kept: BTreeSet<&str> =
            state.preferences.prefer.iter().map(String::as_str).collect();
        kept.extend(state.results_of_turn().map(|result| result.agent.as_str()));
        kept.extend(state.stages.iter().flatten().map(|task| task.agent.as_str()));
        let mut query = vec![(1.0, state.input_request.as_str())];
        let text = super::window::of_talk(state).into_iter().rev();
        let text = text.filter(|message| message.role == "user").take(2);
        query.extend(text.map(|message| (BESIDES, message.content.as_str())));
        query.extend(state.plan.iter().map(|step| (BESIDES, step.as_str())));
        kept.extend(names_in(&state.plan));
        let found = latest(state).flat_map(|search| &search.found).map(String::as_str);
        Self {
            tenant,
            disabled: &state.preferences.disable,
            kept,
            found: found.collect(),
            query,
            searched: latest(state).map(|search| (1.0, search.query.as_str())).collect(),
        }
    }
}

fn names_in(plan: &[String]) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
    let words = plan.iter().flat_map(move |step| step.split(move |letter| !is_part(letter)));
    words.filter(|word| {
        word.starts_with(super::AGENT_PREFIX) || word.starts_with(super::TEAM_PREFIX)
    })
}

/// Searches of one turn.
pub(super) const MOST: usize = 8;

/// The maximum of searches of one decision, and of searches whose results stay in the catalog; older searches show only
/// names.
pub(super) const SHOWN: usize = 2;

/// Returns the searches whose results the catalog shows.
pub(super) fn latest(state: &GraphState) -> impl Iterator<Item = &Search> {
    let searches = &state.routing.searches;
    searches.iter().skip(searches.len().saturating_sub(SHOWN))
}

pub(super) fn left(state: &GraphState) -> usize {
    MOST.saturating_sub(state.routing.searches.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Preferences, Routing, Search};

    #[test]
    fn a_whole_catalog_is_recorded_in_its_earlier_form() {
        let whole = Menu { shown: vec![("a".into(), "x".into())], hidden: vec![] };
        assert_eq!(json!(whole), json!([["a", "x"]]));
        assert_eq!(serde_json::from_value::<Menu>(json!([["a", "x"]])).unwrap(), whole);
        let part = Menu { hidden: vec!["b".into()], ..whole };
        assert_eq!(serde_json::from_value::<Menu>(json!(part)).unwrap(), part);
    }

    #[test]
    fn agents_that_are_preferred_planned_or_found_lately_stay_in_the_catalog() {
        let preferences =
            Preferences { prefer: vec!["mcp_agent_mail".into()], ..Preferences::default() };
        let found = |name: &str, round| Search {
            query: name.to_owned(),
            found: vec![format!("mcp_agent_{name}")],
            is_new: true,
            round,
        };
        let names = ["forgotten", "a", "b"].into_iter().zip(1..);
        let searches = names.map(|(name, round)| found(name, round)).collect();
        let state = GraphState {
            plan: vec!["done: ask mcp_agent_sql, then `mcp_agent_my-files`.".into()],
            preferences,
            routing: Routing { searches, ..Routing::default() },
            ..GraphState::default()
        };
        let wanted = MenuQuery::of("", &state);
        let named = |names: &[&str]| {
            names.iter().map(|name| format!("mcp_agent_{name}")).collect::<Vec<_>>()
        };
        assert_eq!(
            wanted.kept.into_iter().collect::<Vec<_>>(),
            named(&["mail", "my-files", "sql"])
        );
        assert_eq!(wanted.found.into_iter().collect::<Vec<_>>(), named(&["a", "b"]));
    }
}
