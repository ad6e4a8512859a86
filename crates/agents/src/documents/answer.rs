//! Answers from the passages; which documents there are is answered from the server's list.

use serde_json::json;

use super::list;
use crate::cited::{self, Work, WorkUpdate};
use crate::pipeline::{Finding, Stage, StageResult, Step};

/// What the model answers to be shown the list; prompts/documents_answer.md tells it so.
const LIST: &str = "LIST";

pub(super) async fn answer(stage: Stage<Work>) -> StageResult<Work> {
    if !stage.has_tool("list") {
        return cited::answer(stage).await;
    }
    if stage.state().passages.is_empty() {
        let mut output = cited::nothing(stage.state());
        match list::lines(&stage).await?.as_slice() {
            [] => output.push_str("\n\nThere are no documents."),
            lines => output.push_str(&format!("\n\nThe documents are:\n- {}", lines.join("\n- "))),
        }
        return Ok(Step::done(Finding::text(output).confidence(cited::NOTHING)));
    }
    let mut written = cited::write(&stage, json!({ "can_list": true })).await?;
    if written.trim() == LIST {
        let documents = list::lines(&stage).await?;
        written = cited::write(&stage, json!({ "documents": documents })).await?;
    }
    Ok(Step::done_with(WorkUpdate::new(), cited::finding(&stage, &written)))
}
