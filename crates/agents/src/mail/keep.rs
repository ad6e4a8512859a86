//! Keeps the text as a draft, which has its Message-ID from then on.

use super::{Letter, LetterUpdate, Mail};
use crate::pipeline::{AgentError, ErrorKind, Finding, Stage, StageResult, Step};

pub async fn keep(stage: Stage<Letter>) -> StageResult<Letter> {
    let Some(wanted) = stage.state().wanted.clone() else {
        return Err(AgentError::new(ErrorKind::Tool, "there is no text to keep").into());
    };
    let reply = stage.call(&wanted.role, wanted.arguments).await?;
    if reply.is_error && reply.text.starts_with("a person denied") {
        return Ok(Step::done(Finding::text(format!("No draft was kept: {}.", reply.text))));
    }
    let draft = reply.structured.and_then(|data| serde_json::from_value::<Mail>(data).ok());
    let Some(draft) = draft.filter(|draft| !reply.is_error && !draft.id.is_empty()) else {
        return Err(AgentError::new(ErrorKind::of_message(&reply.text), reply.text).into());
    };
    let update = LetterUpdate::new().draft(Some(draft));
    if let Some(word) = reply.instruction.filter(|word| !word.trim().is_empty()) {
        let problem = format!("the person who approved the draft says: {word}");
        return Ok(Step::goto("write", update.problem(Some(problem))));
    }
    Ok(Step::next(update))
}
