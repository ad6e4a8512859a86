//! Searches of the supervisor for agents that its menu does not show: `find_agent`, an agent by name alone.
//!
//! It is chosen like an agent, its task is what to look for, and no name of an agent can be its own: those begin with
//! [`AGENT_PREFIX`](super::AGENT_PREFIX).

use super::event::AgentEvent;
use super::menu::Menu;
use super::roster::Roster;
use super::seen;
use super::state::{GraphState, Search};
use perihelion_engine::graph::{Context, NodeError};

/// Agents that one search finds at most.
const FOUND: usize = 5;

/// What is kept of a query.
const QUERY_CHARS: usize = 200;

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
    let tenant = &ctx.place().tenant;
    let disabled = &state.preferences.disable;
    let find = |query: &String| roster.find_agents(tenant, query, disabled, FOUND);
    // Noted together: a replay reads back one thing of a name for each task.
    let found: Vec<Vec<String>> =
        ctx.observe(seen::FOUND, &queries.iter().map(find).collect::<Vec<_>>()).await?;
    let search = |(query, found): (String, Vec<String>)| {
        let query = in_brief(&query);
        AgentEvent::Search { query: query.clone(), found: found.clone() }.publish(ctx);
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
