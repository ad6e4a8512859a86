//! What a long conversation was about: summed up every three turns, and shown in every prompt (S3.04).

use std::sync::Arc;

use serde_json::json;

use crate::model::{RecordedModel, stop_or_failure};
use crate::window::{self, clip};
use crate::{GraphState, Message, StarParts, Summary};
use perihelion_engine::graph::{Context, NodeError};
use perihelion_llm::{ChatModel as _, ChatRequest, Role};

/// Turns after which a conversation is summed up again.
const EVERY: u32 = 3;

/// Messages that one summary takes in at most, the newest.
const MESSAGES: usize = 60;

/// Characters of a message, and of the summary.
const MESSAGE_CHARS: usize = 2_000;
const SUMMARY_CHARS: usize = 4_000;

/// The key under which prompts find it among what came with the request.
pub(super) const KEY: &str = "conversation_summary";

/// Sums the conversation up where it is time to, before a turn begins; `None` where it is not, or no model does it.
pub(super) async fn sum_up(
    ctx: &Context<GraphState>,
    parts: &Arc<StarParts>,
    model: &RecordedModel<'_>,
) -> Result<Option<Summary>, NodeError> {
    let state = ctx.state();
    let known = state.summary.as_ref();
    // A team's own conversation has one turn, and its request is the supervisor's above.
    if state.turn < known.map_or(0, |known| known.turn) + EVERY {
        return Ok(None);
    }
    let messages = talk_since(state, known.map_or(0, |known| known.messages));
    if messages.is_empty() {
        return Ok(None);
    }
    let shown: Vec<_> = messages
        .iter()
        .map(|message| json!({ "role": message.role, "content": clip(&message.content, MESSAGE_CHARS) }))
        .collect();
    let prompt = json!({ "summary": known.map(|known| &known.text), "messages": shown });
    let asked = parts.prompts.messages("summarizer", prompt).map_err(window::prompt_failed)?;
    let request = ChatRequest::new(Role::Summarizer, parts.thread(ctx.place()), asked);
    let request = request.stage("conversation");
    let text = match model.chat(&request, None).await {
        Ok(response) => response.into_text(),
        Err(error) => Err(error),
    };
    let text = match text {
        Ok(text) => clip(&text, SUMMARY_CHARS),
        Err(error) => {
            let error = stop_or_failure(error)?;
            tracing::debug!(%error, "the conversation was not summed up");
            return Ok(None);
        }
    };
    let taint = messages.iter().map(|message| &message.tainted_by);
    let tainted_by = taint.chain(known.map(|known| &known.tainted_by)).flatten().cloned().collect();
    Ok(Some(Summary { text, turn: state.turn, messages: state.messages.len(), tainted_by }))
}

/// Returns what user, supervisor and QA said after so many messages, oldest first.
fn talk_since(state: &GraphState, summed_up: usize) -> Vec<&Message> {
    let newest = state.newest_messages().take(state.messages.len().saturating_sub(summed_up));
    let talk = newest.filter(|message| message.is_talk());
    let mut messages: Vec<&Message> = talk.take(MESSAGES).collect();
    messages.reverse();
    messages
}
