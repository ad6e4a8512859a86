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

/// A run under way; it counts as active until this is dropped.
#[derive(Debug)]
pub struct ActiveRun {
    timer: Timer,
    /// None where nothing is collected.
    graph: Option<Arc<str>>,
}

/// A run began.
pub fn run_started(graph: &str) -> ActiveRun {
    let timer = Timer::start();
    let Some(to) = instruments() else { return ActiveRun { timer, graph: None } };
    let graph: Arc<str> = graph.into();
    let labels = [KeyValue::new(l::GRAPH, Arc::clone(&graph))];
    to.runs_started.add(1, &labels);
    to.runs_active.add(1, &labels);
    ActiveRun { timer, graph: Some(graph) }
}

impl ActiveRun {
    /// The run ended so.
    pub fn ended(self, status: &'static str) {
        let (Some(to), Some(took), Some(graph)) =
            (instruments(), self.timer.elapsed(), self.graph.as_ref())
        else {
            return;
        };
        let status = KeyValue::new(l::STATUS, status);
        to.runs_ended.add(1, &[KeyValue::new(l::GRAPH, Arc::clone(graph)), status.clone()]);
        to.runs
            .record(took.as_secs_f64(), &[KeyValue::new(l::WORKFLOW, Arc::clone(graph)), status]);
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        if let (Some(to), Some(graph)) = (instruments(), self.graph.take()) {
            to.runs_active.add(-1, &[KeyValue::new(l::GRAPH, graph)]);
        }
    }
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

/// A commit of a step was acknowledged, or failed.
pub fn step_committed(timer: Timer, committed: bool) {
    let (Some(to), Some(took)) = (instruments(), timer.elapsed()) else { return };
    if committed {
        to.steps.add(1, &[]);
        to.commits.record(took.as_secs_f64(), &[]);
    } else {
        to.commits.record(took.as_secs_f64(), &[KeyValue::new(l::ERROR, "store_error")]);
    }
}

/// An effect was recorded for the first time.
pub fn effect_recorded(kind: &'static str) {
    let Some(to) = instruments() else { return };
    to.recorded.add(1, &[KeyValue::new(l::EFFECT, kind)]);
}

/// The recorded outcome of an effect was used instead of performing it.
pub fn effect_read_back(kind: &'static str) {
    let Some(to) = instruments() else { return };
    to.read_back.add(1, &[KeyValue::new(l::EFFECT, kind)]);
}

/// A question was put to a person.
pub fn interrupted(kind: &str) {
    let Some(to) = instruments() else { return };
    to.interrupts.add(1, &[KeyValue::new(l::INTERRUPT, kind.to_owned())]);
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

/// So many threads of the database have this status now.
pub fn threads_stand(status: &'static str, count: u64) {
    let Some(to) = instruments() else { return };
    to.threads.record(count, &[KeyValue::new(l::STATUS, status)]);
}

/// So many threads of the database owe the collector a trace now.
pub fn traces_owed(count: u64) {
    let Some(to) = instruments() else { return };
    to.owed.record(count, &[]);
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

/// A run ended because another process took its thread.
pub fn lease_lost() {
    if let Some(to) = instruments() {
        to.leases_lost.add(1, &[]);
    }
}

/// A thread was taken over from a process that died or stood still.
pub fn lease_taken_over() {
    if let Some(to) = instruments() {
        to.leases_taken.add(1, &[]);
    }
}

/// The connection to an MCP server stands or does not.
pub fn server_stands<'a>(server: impl Into<Cow<'a, str>>, up: bool) {
    let Some(to) = instruments() else { return };
    to.server_up.record(u64::from(up), &[KeyValue::new(l::SERVER, server.into().into_owned())]);
}
