//! The summary of a long conversation: made every three turns, and shown in every prompt (S3.04).

use std::sync::Arc;

use serde_json::json;

use crate::model::{RecordedModel, stop_or_failure};
use crate::window::{self, clip};
use crate::{GraphState, Message, Result, StarParts, Summary};
use perihelion_engine::graph::Context;
use perihelion_llm::{ChatModel as _, ChatRequest, Role};

/// Turns after which a conversation is summed up again.
const EVERY: u32 = 3;

/// Messages that one summary takes in at most, the newest.
const MESSAGES: usize = 60;

/// Characters of a message, and of the summary.
const MESSAGE_CHARS: usize = 2_000;
const SUMMARY_CHARS: usize = 4_000;

pub(super) const KEY: &str = "conversation_summary";

/// Returns the summary so far; `None` if a client has removed a message that it covers, so that no model sees it again.
pub(super) fn current(state: &GraphState) -> Option<&Summary> {
    let summary = state.summary.as_ref()?;
    let all = state.messages.len();
    let covered = match &summary.newest {
        Some(id) => state.newest_messages().position(|one| one.id == *id).map(|new| all - new),
        // Summaries of earlier versions have only a count.
        None => Some(all),
    };
    (covered.unwrap_or_default() >= summary.messages).then_some(summary)
}

/// Summarizes the conversation before a turn if it is due; `None` if it is not, or without a model.
pub(super) async fn sum_up(
    ctx: &Context<GraphState>,
    parts: &Arc<StarParts>,
    model: &RecordedModel<'_>,
    known: Option<&Summary>,
) -> Result<Option<Summary>> {
    let state = ctx.state();
    // A team's own conversation has one turn, and its request is the supervisor's above.
    if state.turn < known.map_or(0, |known| known.turn) + EVERY {
        return Ok(None);
    }
    let messages = talk_since(state, known);
    if messages.is_empty() {
        return Ok(None);
    }
    let shown = |message: &&Message| json!({ "role": message.role, "content": clip(&message.content, MESSAGE_CHARS) });
    let shown: Vec<_> = messages.iter().map(shown).collect();
    let prompt = json!({ "summary": known.map(|known| &known.text), "messages": shown });
    let asked = parts.prompts.messages("summarizer", prompt).map_err(window::prompt_failed)?;
    let request = ChatRequest::new(Role::Summarizer, parts.thread(ctx.place()), asked);
    let request = request.stage("conversation");
    let answer = model.chat(&request, None).await;
    let text = match answer.and_then(|response| response.into_text()) {
        Ok(text) => clip(&text, SUMMARY_CHARS),
        Err(error) => {
            let error = stop_or_failure(error)?;
            tracing::debug!(%error, "the conversation was not summed up");
            return Ok(None);
        }
    };
    let taint = messages.iter().map(|message| &message.tainted_by);
    let tainted_by = taint.chain(known.map(|known| &known.tainted_by)).flatten().cloned().collect();
    let newest = state.newest_messages().next().map(|message| message.id.clone());
    let messages = state.messages.len();
    Ok(Some(Summary { text, turn: state.turn, messages, newest, tainted_by }))
}

/// Returns the messages of user, supervisor and QA that are newer than a summary, oldest first.
fn talk_since<'a>(state: &'a GraphState, known: Option<&Summary>) -> Vec<&'a Message> {
    let all = state.messages.len();
    let new = match known.and_then(|known| known.newest.as_ref()) {
        Some(id) => state.newest_messages().position(|one| one.id == *id),
        None => all.checked_sub(known.map_or(0, |known| known.messages)),
    };
    let talk = state.newest_messages().take(new.unwrap_or(all)).filter(|one| one.is_talk());
    let mut messages: Vec<&Message> = talk.take(MESSAGES).collect();
    messages.reverse();
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.04
    #[test]
    fn a_summary_ends_with_the_messages_that_it_covers() {
        let message = |step| Message::new((1, step, "user"), "user", "Hello");
        let messages: crate::Messages = (2..5).map(message).collect();
        let new = |messages: usize, newest: Option<u64>| {
            let newest = newest.map(|step| message(step).id);
            let summary = Some(Summary { messages, newest, ..Summary::default() });
            let messages = (2..5).map(message).collect();
            let state = GraphState { messages, summary, ..GraphState::default() };
            current(&state).map(|known| talk_since(&state, Some(known)).len())
        };
        let state = GraphState { messages, ..GraphState::default() };
        assert_eq!(talk_since(&state, None).len(), 3);
        assert_eq!(new(2, Some(3)), Some(1));
        assert_eq!(new(2, None), Some(1), "a summary of an earlier version");
        assert_eq!(new(3, Some(2)), None, "the first two were removed, and as many were added");
        assert_eq!(new(3, Some(3)), None, "one between was removed");
        assert_eq!(new(2, Some(9)), None, "the newest that the summary covers was removed");
        assert_eq!(new(40, None), None, "most were removed");
    }
}
