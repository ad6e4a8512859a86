//! The analysis behind an answer, or a failure, as one document: stored as an artifact and linked from the result.

use serde_json::{Value, json};

use super::turn::{Interpretation, Preview, SqlTriage, Turn};
use crate::pipeline::Stage;

/// Name of the document among the agent's artifacts.
pub const NAME: &str = "analysis.json";

/// Returns the panels of an answer: grounding, drafts, guard, review, attempts, triage, preview, answer.
pub fn of(stage: &Stage<Turn>, preview: &Preview, reply: &Interpretation) -> String {
    let state = stage.state();
    panels(state, &state.triages, json!(preview), json!(reply))
}

pub fn of_failure(stage: &Stage<Turn>, triages: &[SqlTriage]) -> String {
    panels(stage.state(), triages, Value::Null, Value::Null)
}

fn panels(state: &Turn, triages: &[SqlTriage], preview: Value, reply: Value) -> String {
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
