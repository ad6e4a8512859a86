//! What the star of a team begins with.

use crate::Allowance;
use crate::assignment::Assignment;
use crate::state::{GraphState, GraphUpdate, Preferences};

/// Returns what a team begins with: its task as the request, and where the task's words come from.
pub(super) fn opening_of(
    state: &GraphState,
    assignment: &Assignment,
    allowance: Allowance,
) -> GraphUpdate {
    let mut request = assignment.described();
    for upstream in &assignment.dependency_outputs {
        let agent = &upstream.agent;
        let task = &upstream.task;
        let output = &upstream.output;
        request.push_str(&format!("\n\nWhat {agent} found for \"{task}\":\n{output}"));
    }
    let tainted_by = assignment.tainted_by.clone();
    let Preferences { skip_approvals, interactive, .. } = state.preferences;
    // Its own agents have other names; teams within it keep off the same ones.
    let disable = state.preferences.disable.clone();
    let preferences = Preferences {
        disable,
        tainted_by,
        skip_approvals,
        interactive,
        allowance: Some(allowance),
        ..Preferences::default()
    };
    let update = GraphUpdate::new()
        .input_request(request)
        .request_context(state.request_context.clone())
        .preferences(preferences);
    match &state.user {
        Some(user) => update.user(Some(user.clone())),
        None => update,
    }
}
