//! Which searches of a turn still matter.

use super::state::{GraphState, Search};

/// Searches of one turn.
pub(super) const MOST: usize = 8;

/// Searches of one decision at most, and those whose findings stay in the menu; of earlier ones, the names are shown.
pub(super) const SHOWN: usize = 2;

/// Returns the searches whose findings the menu shows.
pub(super) fn latest(state: &GraphState) -> impl Iterator<Item = &Search> {
    let searches = &state.routing.searches;
    searches.iter().skip(searches.len().saturating_sub(SHOWN))
}

/// Returns how many more searches the turn may have.
pub(super) fn left(state: &GraphState) -> usize {
    MOST.saturating_sub(state.routing.searches.len())
}
