//! What can be told: one function for each thing that happens.

use std::borrow::Cow;
use std::sync::Arc;

use opentelemetry::KeyValue;

use super::definitions::label as l;
use super::{Timer, instruments};

/// The only provider there is: every model is spoken to in OpenAI's way.
const PROVIDER: &str = "openai";

/// How a model call ended.
#[derive(Clone, Copy, Debug)]
pub enum ModelCall<'a> {
    Answered {
        model: &'a str,
        input_tokens: u64,
        output_tokens: u64,
        nano_usd: Option<u64>,
    },
    /// The class of the error.
    Failed(&'static str),
}

/// A model was asked, and its caller has an answer or an error.
pub fn model_called(timer: Timer, role: &'static str, call: ModelCall<'_>) {
    let (Some(to), Some(took)) = (instruments(), timer.elapsed()) else { return };
    let labels = |last: [KeyValue; 2]| {
        let [model, more] = last;
        let operation = KeyValue::new(l::OPERATION, "chat");
        [operation, KeyValue::new(l::PROVIDER, PROVIDER), KeyValue::new(l::ROLE, role), model, more]
    };
    let (model, input_tokens, output_tokens, nano_usd) = match call {
        ModelCall::Failed(class) => {
            let [operation, provider, role, error, _] =
                labels([KeyValue::new(l::ERROR, class), KeyValue::new(l::MODALITY, "text")]);
            return to.model_calls.record(took.as_secs_f64(), &[operation, provider, role, error]);
        }
        ModelCall::Answered { model, input_tokens, output_tokens, nano_usd } => {
            (Arc::<str>::from(model), input_tokens, output_tokens, nano_usd)
        }
    };
    let model = KeyValue::new(l::MODEL, model);
    let all = labels([model.clone(), KeyValue::new(l::MODALITY, "text")]);
    to.model_calls.record(took.as_secs_f64(), &all[..4]);
    to.input_tokens.add(input_tokens, &all);
    to.output_tokens.add(output_tokens, &all);
    if let Some(cost) = nano_usd {
        to.cost.add(cost as f64 / 1e9, &[model, KeyValue::new(l::ROLE, role)]);
    }
}

/// A request to a model is to be sent again.
pub fn model_retried(role: &'static str, reason: &'static str) {
    let Some(to) = instruments() else { return };
    to.retries.add(1, &[KeyValue::new(l::ROLE, role), KeyValue::new(l::REASON, reason)]);
}

/// An agent's work on a task ended, with an error of this class or with a result.
pub fn agent_worked(timer: Timer, agent: &str, error: Option<&'static str>) {
    let (Some(to), Some(took)) = (instruments(), timer.elapsed()) else { return };
    let agent = KeyValue::new(l::AGENT, agent.to_owned());
    match error {
        None => to.agents.record(took.as_secs_f64(), &[agent]),
        Some(class) => {
            to.agents.record(took.as_secs_f64(), &[agent, KeyValue::new(l::ERROR, class)]);
        }
    }
}

/// A tool call ended, with an error of this class or with a result.
pub fn tool_called(timer: Timer, server: &str, tool: &str, error: Option<&'static str>) {
    let (Some(to), Some(took)) = (instruments(), timer.elapsed()) else { return };
    let server = KeyValue::new(l::SERVER, server.to_owned());
    let tool = KeyValue::new(l::TOOL, tool.to_owned());
    match error {
        None => to.tools.record(took.as_secs_f64(), &[server, tool]),
        Some(class) => {
            let error = KeyValue::new(l::ERROR, class);
            to.call_errors.add(1, &[server.clone(), error.clone()]);
            to.tools.record(took.as_secs_f64(), &[server, tool, error]);
        }
    }
}

/// The circuit breaker or a budget ended a turn.
pub fn breaker_tripped(reason: &'static str) {
    let Some(to) = instruments() else { return };
    to.trips.add(1, &[KeyValue::new(l::REASON, reason)]);
}

/// An agent's output was judged.
pub fn reflected(agent: &str, verdict: &'static str) {
    let Some(to) = instruments() else { return };
    let agent = KeyValue::new(l::AGENT, agent.to_owned());
    to.reflections.add(1, &[agent, KeyValue::new(l::VERDICT, verdict)]);
}

/// So many citations of an answer named nothing and were removed.
pub fn citations_removed(agent: &str, count: u64) {
    let Some(to) = instruments().filter(|_| count > 0) else { return };
    to.citations_removed.add(count, &[KeyValue::new(l::AGENT, agent.to_owned())]);
}

/// So many threads of the database have this status now.
pub fn threads_stand(status: &'static str, count: u64) {
    let Some(to) = instruments() else { return };
    to.threads.record(count, &[KeyValue::new(l::STATUS, status)]);
}

/// So many threads of the database have a pending trace now.
pub fn traces_pending(count: u64) {
    let Some(to) = instruments() else { return };
    to.pending.record(count, &[]);
}

/// A delivery to the collector succeeded or failed; `signal` is `traces` or `metrics`.
pub fn delivered(signal: &'static str, arrived: bool) {
    let Some(to) = instruments() else { return };
    let outcome = KeyValue::new(l::OUTCOME, if arrived { "delivered" } else { "failed" });
    to.deliveries.add(1, &[KeyValue::new(l::SIGNAL, signal), outcome]);
}

/// A trace arrived, and the collector said how many of its spans it did not keep.
pub fn spans_delivered(accepted: u64, rejected: u64) {
    let Some(to) = instruments() else { return };
    let outcome = |word: &'static str| [KeyValue::new(l::OUTCOME, word)];
    to.spans.add(accepted, &outcome("accepted"));
    if rejected > 0 {
        to.spans.add(rejected, &outcome("rejected"));
    }
}

/// The connection to an MCP server stands or does not.
pub fn server_stands<'a>(server: impl Into<Cow<'a, str>>, up: bool) {
    let Some(to) = instruments() else { return };
    to.server_up.record(u64::from(up), &[KeyValue::new(l::SERVER, server.into().into_owned())]);
}
