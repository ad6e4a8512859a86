//! Searches of the supervisor for agents that its menu does not show: `find_agent`, an agent by name alone.
//!
//! It is chosen like an agent, its task is what to look for, and no name of an agent can be its own: those begin with
//! [`AGENT_PREFIX`](super::AGENT_PREFIX).

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::menu::Menu;
use super::roster::Roster;
use super::seen;
use super::state::GraphState;
use crate::graph::{Context, NodeError};

/// The name under which the supervisor searches.
pub(super) const FIND_AGENT: &str = "find_agent";

/// Searches of one turn.
pub(super) const MOST: usize = 8;

/// Agents that one search finds at most.
const FOUND: usize = 5;

/// Searches of one decision at most, and those whose findings stay in the menu; of those before, the names are told.
pub(super) const SHOWN: usize = 2;

/// What is kept of a query.
const QUERY_CHARS: usize = 200;

/// A search that was made in the present turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    pub query: String,
    /// Names of agents, best first.
    pub found: Vec<String>,
    /// Whether one of them was not in the menu.
    pub is_new: bool,
    /// The decision that asked for it, counted from 1 within the turn.
    pub round: u32,
}

impl Search {
    /// Returns the searches whose findings the menu shows.
    pub(super) fn latest(state: &GraphState) -> impl Iterator<Item = &Self> {
        let searches = &state.routing.searches;
        searches.iter().skip(searches.len().saturating_sub(SHOWN))
    }

    /// Returns how many more searches the turn may have.
    pub(super) fn left(state: &GraphState) -> usize {
        MOST.saturating_sub(state.routing.searches.len())
    }
}

/// Makes the searches of a decision; what they find is noted like what a node sees.
///
/// # Errors
/// [`NodeError`] when it cannot be noted.
pub(super) async fn perform(
    ctx: &Context<GraphState>,
    roster: &Roster,
    menu: &Menu,
    queries: Vec<String>,
) -> Result<Vec<Search>, NodeError> {
    let state = ctx.state();
    if queries.is_empty() {
        return Ok(Vec::new());
    }
    let find = |query: &String| roster.find_agents(query, &state.preferences.disable, FOUND);
    // Noted together: a replay reads back one thing of a name for each task.
    let found: Vec<Vec<String>> =
        ctx.observe(seen::FOUND, &queries.iter().map(find).collect::<Vec<_>>()).await?;
    let search = |(query, found): (String, Vec<String>)| {
        let query = in_brief(&query);
        ctx.emit(json!({ "type": "search", "query": query, "found": found }));
        let is_new = found.iter().any(|name| menu.hidden.contains(name));
        Search { query, found, is_new, round: state.routing.round + 1 }
    };
    Ok(queries.into_iter().zip(found).map(search).collect())
}

/// Returns the beginning of a query, on one line: it is kept in the state and told in every further prompt of the turn.
fn in_brief(query: &str) -> String {
    let line = query.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(QUERY_CHARS).collect()
}
