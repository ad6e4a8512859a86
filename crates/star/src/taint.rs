//! How provenance travels through the state.
//!
//! Taint follows the content: from a tool's result to the agent that read it, to its output, artifacts and message, to
//! their readers, and to the tasks that a supervisor makes of them. It is never washed off by a model that puts things
//! in other words.

use crate::{Assignment, GraphState, Sources, attachments, window};

/// Returns the open-world sources of the supervisor's words, and of QA's, which has the same input.
pub(super) fn of_talk(state: &GraphState) -> Sources {
    let results = state.results_of_turn().map(|result| &result.tainted_by);
    let messages = window::of_talk(state).into_iter().map(|message| &message.tainted_by);
    let artifacts = window::listed(state).map(|(_, artifact)| &artifact.tainted_by);
    let request = [&state.preferences.tainted_by];
    let summary = state.summary.iter().map(|summary| &summary.tainted_by);
    results
        .chain(messages)
        .chain(artifacts)
        .chain(attachments::sources(state))
        .chain(request)
        .chain(summary)
        .flatten()
        .cloned()
        .collect()
}

pub(super) fn of_opening(state: &GraphState, assignment: &Assignment) -> Sources {
    let messages = window::of_late(state).into_iter().map(|message| &message.tainted_by);
    let artifacts = window::listed(state).map(|(_, artifact)| &artifact.tainted_by);
    messages
        .chain(artifacts)
        .chain(attachments::sources(state))
        .chain([&state.preferences.tainted_by, &assignment.tainted_by])
        .chain(state.summary.iter().map(|summary| &summary.tainted_by))
        .flatten()
        .cloned()
        .collect()
}
