//! A model behind the node's context: each call is recorded, and paid once.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::json;

use super::GraphState;
use crate::graph::{
    Context, EffectClass, EffectFailure, EffectRequest, NodeError, Outcome, StreamMode,
};
use crate::llm::{ChatModel, ChatRequest, ChatResponse, Error, TokenSink};

/// Calls a model for one node, recorded in the node's journal.
pub(super) struct RecordedModel<'a> {
    ctx: &'a Context<GraphState>,
    model: &'a Arc<dyn ChatModel>,
    /// Publish the pieces of streamed answers.
    streamed: bool,
}

impl<'a> RecordedModel<'a> {
    pub(super) fn new(ctx: &'a Context<GraphState>, model: &'a Arc<dyn ChatModel>) -> Self {
        Self { ctx, model, streamed: false }
    }

    /// Streams answers to the run's listeners as they are written.
    pub(super) fn streamed(mut self) -> Self {
        self.streamed = true;
        self
    }
}

#[async_trait]
impl ChatModel for RecordedModel<'_> {
    async fn chat(
        &self,
        request: &ChatRequest,
        _: Option<TokenSink<'_>>,
    ) -> Result<ChatResponse, Error> {
        let recorded = serde_json::to_value(request).map_err(|error| unreadable(&error))?;
        // The typed error of a call that fails now; the journal only keeps its text.
        let failure: Mutex<Option<Error>> = Mutex::new(None);
        let effect = EffectRequest {
            class: EffectClass::Inquiry,
            name: request.role.as_str().to_owned(),
            request: recorded,
        };
        let perform = Box::new(|_key| {
            let failure = &failure;
            Box::pin(async move {
                let mut publish = |piece: &str| {
                    self.ctx.port().emit(StreamMode::Messages, json!({ "text": piece }))
                };
                let sink: Option<TokenSink<'_>> =
                    if self.streamed { Some(&mut publish) } else { None };
                match self.model.chat(request, sink).await {
                    Ok(response) => serde_json::to_value(response)
                        .map_err(|e| EffectFailure::NoEffect(e.to_string())),
                    Err(error) => {
                        let text = error.to_string();
                        *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        Err(EffectFailure::NoEffect(text))
                    }
                }
            }) as futures::future::BoxFuture<'_, _>
        });
        match self.ctx.effect(effect, perform).await {
            Ok(Outcome::Value(value)) => {
                serde_json::from_value(value).map_err(|error| unreadable(&error))
            }
            Ok(Outcome::Failed(text)) => {
                let live = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
                Err(live.unwrap_or(Error::Recorded(text)))
            }
            Err(error) => Err(Error::Interrupted(Box::new(error))),
        }
    }
}

fn unreadable(error: &serde_json::Error) -> Error {
    Error::Malformed { endpoint: "the journal".into(), reason: error.to_string() }
}

/// Tells a failed call apart from a node that must stop (cancelled, or the journal broke).
pub(super) fn stop_or_failure(error: Error) -> Result<Error, NodeError> {
    match error {
        Error::Interrupted(inner) => match inner.downcast::<NodeError>() {
            Ok(node) => Err(*node),
            Err(other) => Ok(Error::Interrupted(other)),
        },
        other => Ok(other),
    }
}
