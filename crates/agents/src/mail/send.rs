//! Sends the draft where the task asks for it: the call shows all of it, and an unknown outcome is put to the user.

use serde_json::json;

use super::plan::Action;
use super::{Letter, LetterUpdate};
use crate::pipeline::{AgentError, Clarification, ErrorKind, Stage, StageResult, Step, ToolReply};

/// How the server begins where it cannot know whether a draft was sent.
const UNKNOWN: &str = "OutcomeUnknown";
/// The answers to choose from.
const AGAIN: &str = "send it again";
const LEAVE: &str = "leave it";

pub async fn send(stage: Stage<Letter>) -> StageResult<Letter> {
    let state = stage.state();
    let Some(draft) = &state.draft else {
        return Err(AgentError::new(ErrorKind::Tool, "there is no draft to send").into());
    };
    let is_wanted = state.plan.send || state.plan.action == Action::Send;
    if !is_wanted || !stage.has_tool("send") {
        return Ok(Step::next(LetterUpdate::new()));
    }
    let mut arguments = json!({ "id": draft.id, "message": draft.shown() });
    let mut reply = stage.call("send", arguments.clone()).await?;
    if reply.is_error && reply.text.starts_with(UNKNOWN) {
        let words = format!(
            "Whether “{}” reached {} is not known: sending began and did not end. Has it arrived?",
            draft.subject,
            draft.recipients()
        );
        let question = Clarification::new(words).option(AGAIN).option(LEAVE);
        let answer = stage.clarify(question).await?;
        if answer.trim().to_lowercase() != AGAIN {
            let words = format!(
                "Whether “{}” was sent is not known; as you said, it was not sent again: {answer}",
                draft.subject
            );
            return Ok(Step::next(LetterUpdate::new().sent(Some(words))));
        }
        arguments["resend"] = json!(true);
        reply = stage.call("send", arguments).await?;
    }
    let words = confirmation(&reply, &draft.subject, &draft.recipients())?;
    Ok(Step::next(LetterUpdate::new().sent(words)))
}

/// Says what became of it; none where a person wants it kept.
fn confirmation(
    reply: &ToolReply,
    subject: &str,
    recipients: &str,
) -> Result<Option<String>, AgentError> {
    if reply.is_error && reply.text.starts_with("a person denied") {
        return Ok(None);
    }
    if reply.is_error {
        return Err(AgentError::new(ErrorKind::of_message(&reply.text), reply.text.clone()));
    }
    let word = reply.instruction.as_deref().map(str::trim).filter(|word| !word.is_empty());
    let word =
        word.map(|word| format!(" The person who approved it says: {word}")).unwrap_or_default();
    Ok(Some(format!("Sent “{subject}” to {recipients}.{word}")))
}
