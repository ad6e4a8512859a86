//! Everything that led to an answer, as one document: kept as an artifact and linked from the result.

use serde_json::json;

use super::answers::Interpretation;
use super::turn::{Preview, Turn};
use crate::agents::pipeline::Stage;

/// Returns the panels: grounding, drafts, guard, review, attempts, triage, preview, answer.
pub fn of(stage: &Stage<Turn>, preview: &Preview, said: &Interpretation) -> String {
    let state = stage.state();
    let panels = json!({
        "intent": state.intent,
        "clarifications": state.answers,
        "assumptions": state.assumptions,
        "grounding_pack": state.pack,
        "draft": state.draft,
        "guard": state.checked,
        "reviews": state.reviews,
        "attempts": state.attempts,
        "triages": state.triages,
        "preview": preview,
        "interpretation": said,
    });
    serde_json::to_string_pretty(&panels).unwrap_or_default()
}
