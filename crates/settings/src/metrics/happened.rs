//! The recorders of metrics: one function for each kind of event.

use std::borrow::Cow;
use std::sync::Arc;

use opentelemetry::KeyValue;

use super::definitions::label as l;
use super::{Timer, instruments, tell};

/// The provider of models that are spoken to in OpenAI's way.
const PROVIDER: &str = "openai";

#[derive(Clone, Copy, Debug)]
pub enum ModelCall<'a> {
    Answered {
        model: &'a str,
        /// If the protocol has it.
        provider: Option<&'a str>,
        input_tokens: u64,
        output_tokens: u64,
        nano_usd: Option<u64>,
    },
    /// The class of the error.
    Failed(&'static str),
}

pub fn model_called(timer: Timer, role: &'static str, call: ModelCall<'_>) {
    let (Some(to), Some(took)) = (instruments(), timer.elapsed()) else { return };
    let ended = match call {
        ModelCall::Failed(class) => KeyValue::new(l::ERROR, class),
        ModelCall::Answered { model, .. } => KeyValue::new(l::MODEL, Arc::<str>::from(model)),
    };
    let mut all = vec![KeyValue::new(l::ROLE, role), ended, KeyValue::new(l::OPERATION, "chat")];
    if let ModelCall::Answered { provider, .. } = call {
        all.push(KeyValue::new(l::PROVIDER, Arc::<str>::from(provider.unwrap_or(PROVIDER))));
    }
    to.model_calls.record(took.as_secs_f64(), &all);
    if let ModelCall::Answered { input_tokens, output_tokens, nano_usd, .. } = call {
        if let Some(cost) = nano_usd {
            to.cost.add(cost as f64 / 1e9, &all[..2]);
        }
        all.push(KeyValue::new(l::MODALITY, "text"));
        to.input_tokens.add(input_tokens, &all);
        to.output_tokens.add(output_tokens, &all);
    }
}

pub fn model_retried(role: &'static str, reason: &'static str) {
    tell(|to| to.retries.add(1, &[KeyValue::new(l::ROLE, role), KeyValue::new(l::REASON, reason)]));
}

/// An agent's work on a task ended, with an error of this class or with a result.
pub fn agent_worked(timer: Timer, agent: &str, error: Option<&'static str>) {
    let (Some(to), Some(took)) = (instruments(), timer.elapsed()) else { return };
    let mut labels = vec![KeyValue::new(l::AGENT, agent.to_owned())];
    labels.extend(error.map(|class| KeyValue::new(l::ERROR, class)));
    to.agents.record(took.as_secs_f64(), &labels);
}

/// A tool call ended, with an error of this class or with a result.
pub fn tool_called(timer: Timer, server: &str, tool: &str, error: Option<&'static str>) {
    let (Some(to), Some(took)) = (instruments(), timer.elapsed()) else { return };
    let tool = KeyValue::new(l::TOOL, tool.to_owned());
    let mut labels = vec![tool, KeyValue::new(l::SERVER, server.to_owned())];
    if let Some(class) = error {
        labels.push(KeyValue::new(l::ERROR, class));
        to.call_errors.add(1, &labels[1..]);
    }
    to.tools.record(took.as_secs_f64(), &labels);
}

/// The circuit breaker or a budget ended a turn.
pub fn breaker_tripped(reason: &'static str) {
    tell(|to| to.trips.add(1, &[KeyValue::new(l::REASON, reason)]));
}

pub fn reflected(agent: &str, verdict: &'static str) {
    let Some(to) = instruments() else { return };
    let agent = KeyValue::new(l::AGENT, agent.to_owned());
    to.reflections.add(1, &[agent, KeyValue::new(l::VERDICT, verdict)]);
}

/// This number of citations of an answer had no source and were removed.
pub fn citations_removed(agent: &str, count: u64) {
    let Some(to) = instruments().filter(|_| count > 0) else { return };
    to.citations_removed.add(count, &[KeyValue::new(l::AGENT, agent.to_owned())]);
}

pub fn threads_stand(status: &'static str, count: u64) {
    tell(|to| to.threads.record(count, &[KeyValue::new(l::STATUS, status)]));
}

pub fn traces_pending(count: u64) {
    tell(|to| to.pending.record(count, &[]));
}

/// A delivery to the collector succeeded or failed; `signal` is `traces` or `metrics`.
pub fn delivered(signal: &'static str, arrived: bool) {
    let Some(to) = instruments() else { return };
    let outcome = KeyValue::new(l::OUTCOME, if arrived { "delivered" } else { "failed" });
    to.deliveries.add(1, &[KeyValue::new(l::SIGNAL, signal), outcome]);
}

/// A trace was delivered, and the collector reported how many of its spans it rejected.
pub fn spans_delivered(accepted: u64, rejected: u64) {
    let Some(to) = instruments() else { return };
    let outcome = |word: &'static str| [KeyValue::new(l::OUTCOME, word)];
    to.spans.add(accepted, &outcome("accepted"));
    if rejected > 0 {
        to.spans.add(rejected, &outcome("rejected"));
    }
}

/// The connection to an MCP server is open or not.
pub fn server_stands<'a>(server: impl Into<Cow<'a, str>>, up: bool) {
    tell(|to| {
        to.server_up.record(u64::from(up), &[KeyValue::new(l::SERVER, server.into().into_owned())])
    });
}

/// An MCP server that was not there was asked again.
pub fn server_retried(server: &str, up: bool) {
    let Some(to) = instruments() else { return };
    let outcome = KeyValue::new(l::OUTCOME, if up { "up" } else { "failed" });
    to.server_retries.add(1, &[KeyValue::new(l::SERVER, server.to_owned()), outcome]);
}
