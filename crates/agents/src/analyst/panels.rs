//! The analysis behind an answer, or a failure, as one document: stored as an artifact and linked from the result.

use serde_json::json;

use super::turn::{Interpretation, Preview, SqlTriage, Turn};

/// Name of the document among the agent's artifacts.
pub const NAME: &str = "analysis.json";

/// Returns the panels: grounding, drafts, guard, review, attempts, triage, and of an answer its preview and its text.
pub fn of(
    state: &Turn,
    triages: &[SqlTriage],
    answer: Option<(&Preview, &Interpretation)>,
) -> String {
    let (preview, reply) = answer.unzip();
    let panels = json!({
        "intent": state.intent,
        "clarifications": state.answers,
        "assumptions": state.assumptions,
        "grounding_pack": state.pack,
        "draft": state.draft,
        "guard": state.checked,
        "reviews": state.reviews,
        "attempts": state.attempts,
        "triages": triages,
        "preview": preview,
        "interpretation": reply,
    });
    serde_json::to_string_pretty(&panels).unwrap_or_default()
}
