//! A model behind the node's context: each call is recorded, paid once, and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::attachments::{self, Carried};
use crate::{GraphState, Known, MessagePiece, Result, Spent, StarLimits, StarParts, breaker};
use perihelion_engine::graph::{
    EffectClass, EffectFailure, EffectRequest, NodeError, NodeLocation, Outcome, TaskContext,
};
use perihelion_llm::{ChatModel, ChatRequest, ChatResponse, Error, MessageRole, TokenSink, Usage};
use perihelion_settings::metrics::{self, ModelCall, Timer};

/// Calls a model for one node, recorded in the node's journal.
pub(super) struct RecordedModel<'a> {
    ctx: &'a TaskContext,
    parts: &'a StarParts,
    /// When the time that calls may take began, in microseconds.
    began: i64,
    limits: StarLimits,
    /// Its pieces are published, and its calls may last until the deadline, unlike other work.
    is_answer: bool,
    spent: Mutex<Spent>,
    /// Whether a call was made, and not only read back, since the last check.
    live: AtomicBool,
    asker: Option<Asker>,
    /// The attachments to the newest messages.
    attached: Vec<Carried>,
}

/// The most by which a timer may be early or a clock may be read late.
const TICK: Duration = Duration::from_millis(2);

/// How late an answer may be: a deadline is kept within a second.
const LEEWAY: Duration = Duration::from_millis(500);

#[derive(Serialize, Deserialize)]
struct Paid {
    #[serde(flatten)]
    response: ChatResponse,
    #[serde(default, skip_serializing_if = "crate::is_default")]
    nano_usd: u64,
}

impl<'a> RecordedModel<'a> {
    pub(super) fn new(ctx: &'a TaskContext, parts: &'a StarParts) -> Self {
        Self {
            ctx,
            parts,
            began: ctx.place().run.started_micros(),
            limits: parts.limits,
            is_answer: false,
            spent: Mutex::default(),
            live: AtomicBool::new(false),
            asker: None,
            attached: Vec::new(),
        }
    }

    /// Bounds calls by the time of a turn, which is at work at a place.
    pub(super) fn in_turn(mut self, state: &GraphState, place: &NodeLocation) -> Self {
        self.began = breaker::began(state, place);
        self.limits = self.parts.limits.for_turn(state);
        self
    }

    /// Adds to each prompt the memories about a thread's user and their attachments.
    pub(super) fn remembering(mut self, state: &GraphState) -> Self {
        self.asker = Asker::of(self.ctx.place(), state);
        self.attached = attachments::of_state(state);
        self
    }

    /// Writes the turn's answer: streamed to the run's listeners, and until the deadline itself.
    pub(super) fn answering(mut self) -> Self {
        self.is_answer = true;
        self
    }

    /// Returns what all calls so far have cost; answers that turned out to be unusable are paid as well.
    pub(super) fn spent(&self) -> Spent {
        *self.spent.lock()
    }

    /// Returns whether a call was made, and not only read back, since this was last asked.
    pub(super) fn was_live(&self) -> bool {
        self.live.swap(false, Ordering::Relaxed)
    }

    /// Awaits a call for no longer than the run may last.
    async fn in_time(
        &self,
        call: impl Future<Output = Result<ChatResponse, Error>>,
    ) -> Result<ChatResponse, Error> {
        let limits = &self.limits;
        let Some(seconds) = limits.deadline_sec else { return call.await };
        let late = Error::Late { seconds };
        let most = if self.is_answer {
            Some(Duration::from_secs(seconds) + LEEWAY)
        } else {
            limits.work_time()
        };
        let now = self.ctx.port().unrecorded_now_micros();
        let left = breaker::time_left(self.began, most, now).unwrap_or_default();
        if left.is_zero() {
            return Err(late);
        }
        // Timers are as fine as a millisecond; who looks at the time after this must see that it is up.
        tokio::time::timeout(left + TICK, call).await.unwrap_or(Err(late))
    }

    async fn perform(
        &self,
        request: &ChatRequest,
        failure: &Mutex<Option<Error>>,
    ) -> Result<serde_json::Value, EffectFailure> {
        let mut given = String::new();
        let mut publish = |piece: &str| {
            given.push_str(piece);
            MessagePiece::publish(self.ctx.port(), piece);
        };
        let sink: Option<TokenSink<'_>> = if self.is_answer { Some(&mut publish) } else { None };
        self.live.store(true, Ordering::Relaxed);
        let carrying = if request.messages.iter().any(|message| !message.attached.is_empty()) {
            match attachments::loaded(self.ctx, request, &self.attached).await {
                Ok(loaded) => Some(loaded),
                Err(error) => {
                    let text = error.to_string();
                    *failure.lock() = Some(Error::Interrupted(Box::new(error)));
                    return Err(EffectFailure::NoEffect(text));
                }
            }
        } else {
            None
        };
        let request = carrying.as_ref().unwrap_or(request);
        let timer = Timer::start();
        let role = request.role.as_str();
        let introduced = match &self.asker {
            Some(asker) => asker.introduce(self.parts, request).await,
            None => None,
        };
        let asked = self.parts.model.chat(introduced.as_ref().unwrap_or(request), sink);
        let answered = match self.in_time(asked).await {
            // Readers have this part already, so it is not taken back.
            Err(error) if !given.trim().is_empty() => {
                tracing::warn!(%error, "the answer broke off");
                Ok(ChatResponse::broken_off(request, given, &error))
            }
            answered => answered,
        };
        match answered {
            Ok(response) => {
                let price = self.parts.prices.of(role, &response.model);
                let model = &response.model;
                let Usage { input_tokens, output_tokens, cached_tokens, .. } = response.usage;
                let nano_usd =
                    price.map(|price| price.nano_usd(input_tokens, cached_tokens, output_tokens));
                let provider = response.provider.as_deref();
                let call =
                    ModelCall::Answered { model, provider, input_tokens, output_tokens, nano_usd };
                metrics::model_called(timer, role, call);
                let nano_usd = nano_usd.unwrap_or(0);
                serde_json::to_value(Paid { response, nano_usd }).map_err(EffectFailure::no_effect)
            }
            Err(error) => {
                metrics::model_called(timer, role, ModelCall::Failed(error.class()));
                let text = error.to_string();
                *failure.lock() = Some(error);
                Err(EffectFailure::NoEffect(text))
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
        let carrying = attachments::added(request, &self.attached);
        let request = carrying.as_ref().unwrap_or(request);
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
                let spent = Spent { usage: paid.response.usage, nano_usd: paid.nano_usd, steps: 0 };
                *self.spent.lock() += spent;
                Ok(paid.response)
            }
            Ok(Outcome::Failed(text)) => {
                Err(failure.into_inner().unwrap_or_else(|| Error::recorded(text)))
            }
            Err(error) => Err(Error::Interrupted(Box::new(error))),
        }
    }
}

fn unreadable(error: &serde_json::Error) -> Error {
    Error::Malformed { endpoint: "the journal".into(), reason: error.to_string() }
}

/// Distinguishes a failed call from a node that must stop (cancelled, or the journal failed).
pub(super) fn stop_or_failure(error: Error) -> Result<Error> {
    match error {
        Error::Interrupted(inner) => match inner.downcast::<NodeError>() {
            Ok(node) => Err(*node),
            Err(other) => Ok(Error::Interrupted(other)),
        },
        other => Ok(other),
    }
}

/// The user of the run, and their request (S3.03).
///
/// Memories about a user are added when a request is sent, below the recording. A thread therefore contains none of
/// them: they can be deleted, and a replay does not need them.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    tenant: Arc<str>,
    user: String,
    question: String,
}

impl Asker {
    /// Returns the user of a thread; `None` if it is unknown.
    pub(super) fn of(place: &NodeLocation, state: &GraphState) -> Option<Self> {
        let user = state.user.clone()?;
        let tenant = Arc::clone(&place.tenant);
        Some(Self { tenant, user, question: state.input_request.clone() })
    }

    /// Returns a request with the memories before its first user message; `None` without memories.
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
        let entry = |one: &Known| {
            let since = one.since.format("%Y-%m-%d").to_string();
            json!({ "kind": one.kind, "key": one.key, "value": one.value, "since": since })
        };
        let entries: Vec<_> = known.iter().map(entry).collect();
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
