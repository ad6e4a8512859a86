//! The history of threads: read as traces, and compared.

use std::sync::Arc;

use super::{Error, Trace, TraceHead, view};
use crate::{Runtime, Served, Threads};
use perihelion_engine::checkpoint::{self, Store};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{ReplayReport, StateView};
use perihelion_llm::{ChatMessage, MessageRole, ToolCall, Usage};
use perihelion_settings::config::{Price, Settings};
use perihelion_star::GraphState;
use perihelion_telemetry::history::{self, Comparison};
use perihelion_telemetry::reading::{self, Event};
use perihelion_telemetry::{About, Span, TraceId, View, Which, bill, project, read};
use serde::Serialize;
use serde_json::Value;

/// The traces of a store's threads, as the settings want them; no servers and no model are needed.
#[derive(Clone, Copy)]
pub struct Traces<'a> {
    pub(super) store: &'a Arc<dyn Store>,
    pub(super) settings: &'a Settings,
}

impl Runtime {
    pub fn traces(&self) -> Traces<'_> {
        Traces::of(self.store(), self.settings())
    }

    /// Returns the events of the newest run of a thread and of those it continued with, in order.
    pub async fn events(&self, thread: ThreadId) -> Result<Vec<Event>, Error> {
        Ok(self.traces().read(thread, None).await?.events)
    }
}

impl Threads {
    pub fn traces<'a>(&'a self, settings: &'a Settings) -> Traces<'a> {
        Traces::of(self.store(), settings)
    }
}

impl<'a> Traces<'a> {
    pub fn of(store: &'a Arc<dyn Store>, settings: &'a Settings) -> Self {
        Self { store, settings }
    }

    /// Reads the trace that a run belongs to, the newest run's by default.
    ///
    /// It contains texts of people, models and tools, because the database contains them.
    ///
    /// # Errors
    /// [`Error::Trace`] when the thread or the run does not exist, or its steps are no longer kept.
    pub async fn read(&self, thread: ThreadId, run: Option<u32>) -> Result<Trace, Error> {
        let store = self.store.as_ref();
        let (rows, number) = read(store, thread, run.map_or(Which::Newest, Which::Number)).await?;
        let view = View { content: true, ..view(self.settings) };
        let mut spans = project(&rows, number, view)?;
        bill(&mut spans, &self.settings.models.price_list());
        let (run, trace_id) = spans
            .first()
            .map_or((number, TraceId::of_run(thread, number)), |root| (root.run, root.trace_id));
        let head = TraceHead {
            thread_id: thread,
            title: rows.info.shown_title().map(|title| title.into_owned()),
            run,
            runs: rows.runs.last().map_or(run, |newest| newest.number),
            trace_id,
            overview: reading::overview(&spans),
            notes: reading::notes(&spans),
        };
        let events = reading::events(&spans);
        let analyses = analyses(store, thread, &spans).await?;
        Ok(Trace { head, events, spans, analyses })
    }

    /// Replays a thread, or one run of it; inputs from models and servers come from the journal.
    ///
    /// # Errors
    /// [`checkpoint::Error::UnknownRun`], and as [`Served::replay`].
    pub async fn replay(
        &self,
        graph: &dyn Served,
        thread: ThreadId,
        run: Option<u32>,
    ) -> Result<ReplayReport, Error> {
        let Some(number) = run else { return graph.replay(thread, None).await };
        let runs = self.store.runs(thread).await?;
        let found = runs.iter().find(|one| one.number == number);
        let unknown = checkpoint::Error::UnknownRun { thread, number, newest: runs.len() };
        graph.replay(thread, Some(found.ok_or(unknown)?.id)).await
    }

    pub async fn compare(
        &self,
        one: (ThreadId, Option<u32>),
        other: (ThreadId, Option<u32>),
    ) -> Result<Comparison, Error> {
        Ok(history::compare(self.store.as_ref(), one, other).await?)
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct AnswerAgain {
    pub output: String,
    pub calls: Vec<ToolCall>,
    pub model: String,
    pub usage: Usage,
    /// Billionths of a US dollar, if the price is known.
    pub nano_usd: Option<u64>,
    pub latency_ms: u64,
}

impl Runtime {
    /// Sends the request of a recorded model call again with another system prompt, and stores nothing.
    ///
    /// The rest is as recorded: messages, tools and the form of the answer. `None` if the trace has no such call.
    pub async fn ask_again(
        &self,
        thread: ThreadId,
        run: Option<u32>,
        call: &str,
        prompt: String,
    ) -> Result<Option<AnswerAgain>, Error> {
        let trace = self.traces().read(thread, run).await?;
        let found = trace.spans.into_iter().find(|span| span.span_id.to_string() == call);
        let Some(About::Chat { input: Some(mut request), .. }) = found.map(|span| span.about)
        else {
            return Ok(None);
        };
        request.messages.retain(|message| message.role != MessageRole::System);
        request.messages.insert(0, ChatMessage::system(prompt));
        let started = clock::now();
        let answer = self.model().chat(&request, None).await?;
        let price = self.settings().models.price_list().of(request.role.as_str(), &answer.model);
        let usage = answer.usage;
        let cost = |price: Price| {
            price.nano_usd(usage.input_tokens, usage.cached_tokens, usage.output_tokens)
        };
        Ok(Some(AnswerAgain {
            output: answer.content,
            calls: answer.tool_calls,
            model: answer.model,
            usage,
            nano_usd: price.map(cost),
            latency_ms: (clock::now() - started).num_milliseconds().unsigned_abs(),
        }))
    }
}

/// How the artifact of an analysis ends.
const ANALYSIS: &str = "/analysis.json";

/// The analysis behind one result: grounding pack, draft, guard, attempts, triage, preview, chart.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    pub result: String,
    pub agent: String,
    pub artifact: String,
    pub panels: Value,
}

/// Returns the analyses behind the results of a trace; `None` if the state was deleted.
///
/// # Errors
/// [`checkpoint::Error::Blob`] if one of them cannot be read, and any other error of the store.
async fn analyses(
    store: &dyn Store,
    thread: ThreadId,
    spans: &[Span],
) -> Result<Vec<Analysis>, checkpoint::Error> {
    let worked: Vec<(&str, &str)> = spans
        .iter()
        .filter_map(|span| match &span.about {
            About::Agent { agent, task: Some(task), .. } => Some((agent.as_str(), task.as_str())),
            _ => None,
        })
        .collect();
    if worked.is_empty() {
        return Ok(Vec::new());
    }
    let Ok(view) = StateView::<GraphState>::read(store, thread, None).await else {
        return Ok(Vec::new());
    };
    let state = view.state;
    let results = state.results.iter();
    let of_trace =
        results.filter(|result| worked.contains(&(result.agent.as_str(), result.task.as_str())));
    let mut analyses = Vec::new();
    for result in of_trace {
        let artifact = format!("{}{ANALYSIS}", result.id);
        let Some(kept) = state.global_state.get(&artifact) else { continue };
        let whole = kept.whole(store, thread, &artifact).await?;
        let Ok(panels) = serde_json::from_str(&whole) else { continue };
        let agent = result.agent.clone();
        let result = result.id.clone();
        analyses.push(Analysis { result, agent, artifact, panels });
    }
    Ok(analyses)
}
