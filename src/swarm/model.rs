//! A model behind the node's context: each call is recorded, paid once, and counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::star::StarParts;
use super::{GraphState, Spent};
use crate::graph::{
    Context, EffectClass, EffectFailure, EffectRequest, NodeError, Outcome, StreamMode,
};
use crate::llm::{ChatModel, ChatRequest, ChatResponse, Error, TokenSink};
use crate::metrics::{self, ModelCall, Timer};

/// Calls a model for one node, recorded in the node's journal.
pub(super) struct RecordedModel<'a> {
    ctx: &'a Context<GraphState>,
    parts: &'a StarParts,
    /// Publish the pieces of streamed answers.
    streamed: bool,
    spent: Mutex<Spent>,
    /// Whether a call was made, and not only read back, since somebody last asked.
    live: AtomicBool,
}

/// An answer as recorded, with what it cost at the prices of that time.
#[derive(Serialize, Deserialize)]
struct Paid {
    #[serde(flatten)]
    response: ChatResponse,
    #[serde(default, skip_serializing_if = "is_zero")]
    nano_usd: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl<'a> RecordedModel<'a> {
    pub(super) fn new(ctx: &'a Context<GraphState>, parts: &'a StarParts) -> Self {
        Self { ctx, parts, streamed: false, spent: Mutex::default(), live: AtomicBool::new(false) }
    }

    /// Streams answers to the run's listeners as they are written.
    pub(super) fn streamed(mut self) -> Self {
        self.streamed = true;
        self
    }

    /// Returns what all calls so far have cost; answers that turned out to be unusable are paid as well.
    pub(super) fn spent(&self) -> Spent {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a call was made, and not only read back, since this was last asked.
    pub(super) fn was_live(&self) -> bool {
        self.live.swap(false, Ordering::Relaxed)
    }

    async fn perform(
        &self,
        request: &ChatRequest,
        failure: &Mutex<Option<Error>>,
    ) -> Result<serde_json::Value, EffectFailure> {
        let mut publish =
            |piece: &str| self.ctx.port().emit(StreamMode::Messages, json!({ "text": piece }));
        let sink: Option<TokenSink<'_>> = if self.streamed { Some(&mut publish) } else { None };
        let no_effect = |text: String| EffectFailure::NoEffect(text);
        self.live.store(true, Ordering::Relaxed);
        let (timer, role) = (Timer::start(), request.role.as_str());
        match self.parts.model.chat(request, sink).await {
            Ok(response) => {
                let price = self.parts.prices.of(role, &response.model);
                let (model, usage) = (&response.model, response.usage);
                let (input_tokens, output_tokens) = (usage.input_tokens, usage.output_tokens);
                let nano_usd = price.map(|price| price.nano_usd(input_tokens, output_tokens));
                let call = ModelCall::Answered { model, input_tokens, output_tokens, nano_usd };
                metrics::model_called(timer, role, call);
                let nano_usd = nano_usd.unwrap_or(0);
                serde_json::to_value(Paid { response, nano_usd })
                    .map_err(|error| no_effect(error.to_string()))
            }
            Err(error) => {
                metrics::model_called(timer, role, ModelCall::Failed(error.class()));
                let text = error.to_string();
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Err(no_effect(text))
            }
        }
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
            Box::pin(self.perform(request, &failure)) as futures::future::BoxFuture<'_, _>
        });
        match self.ctx.effect(effect, perform).await {
            Ok(Outcome::Value(value)) => {
                let paid: Paid = serde_json::from_value(value).map_err(|e| unreadable(&e))?;
                let spent = Spent { usage: paid.response.usage, nano_usd: paid.nano_usd };
                *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += spent;
                Ok(paid.response)
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
