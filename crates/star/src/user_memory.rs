//! What is known of a user in every prompt (S3.03).
//!
//! It is added where a request leaves, below what is recorded: a thread holds nothing of it, so that what a user wants to be forgotten is gone, and a
//! replay needs none of it.

use std::sync::Arc;

use serde_json::json;

use super::parts::StarParts;
use super::state::GraphState;
use perihelion_engine::graph::NodeLocation;
use perihelion_llm::{ChatRequest, MessageRole};

/// Whose run it is, and what they asked.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    tenant: Arc<str>,
    user: String,
    question: String,
}

impl Asker {
    /// Returns who asks in a thread; none where nobody said.
    pub(super) fn of(place: &NodeLocation, state: &GraphState) -> Option<Self> {
        let user = state.user.clone()?;
        let tenant = Arc::clone(&place.tenant);
        Some(Self { tenant, user, question: state.input_request.clone() })
    }

    /// Returns a request with what is known of the user before its first user message; none where nothing is.
    pub(super) async fn introduce(
        &self,
        parts: &StarParts,
        request: &ChatRequest,
    ) -> Option<ChatRequest> {
        let experience = parts.experience.as_ref()?;
        let known = experience.known(&self.tenant, &self.user, &self.question).await;
        if known.is_empty() {
            return None;
        }
        let entries: Vec<_> = known
            .iter()
            .map(|one| {
                let since = one.since.format("%Y-%m-%d").to_string();
                json!({ "kind": one.kind, "key": one.key, "value": one.value, "since": since })
            })
            .collect();
        let text = parts.prompts.render("user_memory", json!({ "entries": entries }));
        let text = text
            .inspect_err(|error| tracing::warn!(%error, "the user's memory is left out"))
            .ok()?;
        let mut request = request.clone();
        let first =
            request.messages.iter_mut().find(|message| message.role == MessageRole::User)?;
        first.content = format!("{}\n\n{}", text.trim_end(), first.content);
        Some(request)
    }
}
