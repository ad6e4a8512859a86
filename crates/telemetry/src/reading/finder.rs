//! Finds traces by their content and by ID, without an index that every step would have to maintain.
//!
//! Threads are gone through newest update first, and each trace's rows are projected. Reading costs a few milliseconds
//! per trace, so a search is bounded and reports if it stopped early.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use opentelemetry::KeyValue;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use tokio::sync::Mutex;

use super::kept::{Kept, size};
use crate::{About, Error, Labels, Result, Span, TraceId, View, dialect, otlp, spans_of};
use perihelion_engine::checkpoint::{self, Store, ThreadFilter, ThreadInfo};
use perihelion_engine::ids::ThreadId;
use perihelion_settings::config::TraceScope;

const SEARCHED_THREADS: u32 = 2_000;

const SEARCHED_TRACES: usize = 1_000;

/// Traces from which operations are collected.
const SAMPLED_TRACES: usize = 100;

/// Threads among which a trace is looked for by its id alone.
const ID_THREADS: u32 = 20_000;

/// Newest runs of each, at most: an imported thread can claim any number of runs.
const ID_RUNS: usize = 10_000;

/// The search: traces with a span that meets all conditions.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pub operation: Option<String>,
    /// Attributes as they are exported; `error=true` finds spans that failed.
    pub tags: Vec<(String, String)>,
    /// The span began at this time or later.
    pub after: Option<DateTime<Utc>>,
    /// The span began at this time or before.
    pub before: Option<DateTime<Utc>>,
    pub shortest: Option<TimeDelta>,
    pub longest: Option<TimeDelta>,
    pub limit: usize,
}

#[derive(Clone, Debug)]
pub struct Found {
    /// Newest first.
    pub traces: Vec<Arc<Vec<Span>>>,
    /// False when the search stopped at its bound and older traces were not looked at.
    pub complete: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Operation {
    pub name: String,
    /// `client` for calls to models and tools, else `internal`.
    pub kind: &'static str,
}

pub struct Finder {
    store: Arc<dyn Store>,
    view: View,
    labels: Labels,
    kept: Mutex<Kept>,
}

impl Finder {
    /// Makes a finder; `view` selects the content of spans and the unit of a trace ID, `labels` are added to every
    /// trace.
    pub fn new(store: Arc<dyn Store>, view: View, labels: Labels) -> Self {
        Self { store, view, labels, kept: Mutex::default() }
    }

    pub fn to_otlp(&self, spans: &[Span]) -> ExportTraceServiceRequest {
        otlp::to_request(spans, self.view.content)
    }

    /// Searches: at most 2,000 threads, newest update first, and 1,000 traces.
    pub async fn find(&self, query: &Query) -> Result<Found> {
        let filter = ThreadFilter { limit: Some(SEARCHED_THREADS), ..ThreadFilter::default() };
        let threads = self.store.list(&filter).await?;
        let mut complete = threads.len() < SEARCHED_THREADS as usize;
        let mut traces: Vec<Arc<Vec<Span>>> = Vec::new();
        let mut looked = 0;
        // The start of the oldest trace that was read of a thread with older ones.
        let mut unread = None;
        for info in &threads {
            // No trace of this thread, or of one after it, can be newer than this.
            let newest = info.updated_at;
            let is_older = query.after.is_some_and(|after| newest < after);
            if is_older || are_newer(&traces, query.limit, newest) {
                complete = true;
                break;
            }
            if looked >= SEARCHED_TRACES {
                complete = false;
                break;
            }
            let (all, has_older) =
                self.traces_of(info, query.after, SEARCHED_TRACES - looked).await?;
            looked += all.len();
            if has_older {
                unread = start_of(all.last());
            }
            traces.extend(all.into_iter().filter(|spans| meets(spans, query, self.view.content)));
            traces.sort_by_key(|spans| std::cmp::Reverse(start_of(Some(spans))));
            traces.truncate(query.limit);
        }
        complete &= unread.is_none_or(|unread| are_newer(&traces, query.limit, unread));
        Ok(Found { traces, complete })
    }

    /// Finds a trace by its ID; the ID of a thread means its newest trace.
    ///
    /// An ID that no search has returned yet is searched among the 20,000 threads updated last: IDs derive from thread
    /// and run number, so this takes one list and no reading.
    pub async fn by_id(&self, id: TraceId) -> Result<Option<Arc<Vec<Span>>>> {
        let known = self.kept.lock().await.place_of(id);
        let place = match known {
            Some((thread, run)) => Some((thread, Some(run))),
            None => self.look_for(id).await?,
        };
        let Some((thread, run)) = place else { return Ok(None) };
        let info = match self.store.info(thread).await {
            Err(checkpoint::Error::UnknownThread(_)) => return Ok(None),
            info => info?,
        };
        if self.view.scope == TraceScope::Thread {
            return Ok(self.traces_of(&info, None, SEARCHED_TRACES).await?.0.pop());
        }
        let run = match run {
            Some(run) => Some(run),
            None => self.store.runs(thread).await?.last().map(|newest| newest.number),
        };
        let Some(run) = run else { return Ok(None) };
        if_kept(self.trace(&info, run).await)
    }

    /// Lists the kinds of spans in the newest hundred traces.
    pub async fn operations(&self) -> Result<Vec<Operation>> {
        let query = Query { limit: SAMPLED_TRACES, ..Query::default() };
        let found = self.find(&query).await?;
        let spans = found.traces.iter().flat_map(|spans| spans.iter());
        let operations: BTreeSet<Operation> = spans
            .map(|span| Operation { name: span.name.clone(), kind: span_kind(&span.about) })
            .collect();
        Ok(operations.into_iter().collect())
    }

    /// Finds the thread and run of an id that was not seen before.
    async fn look_for(&self, id: TraceId) -> Result<Option<(ThreadId, Option<u32>)>> {
        let as_thread = ThreadId(uuid::Uuid::from_bytes(id.to_bytes()));
        match self.store.info(as_thread).await {
            Ok(info) => return Ok(Some((info.id, None))),
            Err(checkpoint::Error::UnknownThread(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let filter = ThreadFilter { limit: Some(ID_THREADS), ..ThreadFilter::default() };
        for info in self.store.list(&filter).await? {
            // Every run begins under a claim of its own, and every claim raises the fencing token.
            let newest = u32::try_from(info.fence).unwrap_or(u32::MAX);
            let mut runs = (1..=newest).rev().take(ID_RUNS);
            if let Some(run) = runs.find(|run| TraceId::of_run(info.id, *run) == id) {
                return Ok(Some((info.id, Some(run))));
            }
            tokio::task::yield_now().await;
        }
        Ok(None)
    }

    /// Reads the traces of a thread, newest first: those that ended after a time, up to a limit. Returns also whether
    /// the limit left some out.
    ///
    /// If the unit of a trace ID is the thread, its runs are one trace.
    async fn traces_of(
        &self,
        info: &ThreadInfo,
        after: Option<DateTime<Utc>>,
        most: usize,
    ) -> Result<(Vec<Arc<Vec<Span>>>, bool)> {
        let runs = match self.store.runs(info.id).await {
            // Deleted meanwhile.
            Err(checkpoint::Error::UnknownThread(_)) => return Ok((Vec::new(), false)),
            runs => runs?,
        };
        let whole = self.view.scope == TraceScope::Thread;
        let mut traces: Vec<Arc<Vec<Span>>> = Vec::new();
        let mut next = runs.last().map_or(0, |run| run.number);
        let is_wanted = |next: u32| {
            let ended = runs.iter().find(|run| run.number == next).and_then(|run| run.ended_at);
            let is_before = after.zip(ended).is_some_and(|(after, ended)| ended < after);
            next > 0 && (whole || !is_before)
        };
        while is_wanted(next) && traces.len() < most {
            let trace = match self.trace(info, next).await {
                Err(Error::Truncated { has_older: true, .. }) => {
                    next -= 1;
                    continue;
                }
                // What is no longer kept has no older traces either.
                read => if_kept(read)?,
            };
            let Some(trace) = trace else { break };
            next = trace.first().map_or(0, |root| root.run).saturating_sub(1);
            traces.push(trace);
        }
        let has_older = is_wanted(next) && traces.len() == most;
        if whole && !traces.is_empty() {
            let spans = traces.iter().rev().flat_map(|spans| spans.iter().cloned());
            return Ok((vec![Arc::new(spans.collect())], has_older));
        }
        Ok((traces, has_older))
    }

    async fn trace(&self, info: &ThreadInfo, run: u32) -> Result<Arc<Vec<Span>>> {
        let place = (info.id, run);
        if let Some(spans) = self.kept.lock().await.get(place, info.updated_at) {
            return Ok(spans);
        }
        let mut spans = spans_of(self.store.as_ref(), info.id, run, self.view).await?;
        self.labels.apply(&mut spans);
        let spans = Arc::new(spans);
        if let Some(root) = spans.first() {
            // Measured before all searches wait for the lock.
            let bytes = (!root.open).then(|| spans.iter().map(size).sum());
            let mut kept = self.kept.lock().await;
            kept.place(root.trace_id, place);
            if let Some(bytes) = bytes {
                kept.keep(place, info.updated_at, &spans, bytes);
            }
        }
        Ok(spans)
    }
}

fn start_of(trace: Option<&Arc<Vec<Span>>>) -> Option<DateTime<Utc>> {
    Some(trace?.first()?.start)
}

/// Returns whether there are as many traces as a search may return, and all are newer than that.
fn are_newer(traces: &[Arc<Vec<Span>>], limit: usize, than: DateTime<Utc>) -> bool {
    traces.len() >= limit && start_of(traces.last()).is_some_and(|start| start > than)
}

/// Returns `None` for a trace that was deleted.
fn if_kept(read: Result<Arc<Vec<Span>>>) -> Result<Option<Arc<Vec<Span>>>> {
    match read {
        Err(
            Error::Truncated { .. }
            | Error::NeverRan(_)
            | Error::UnknownRun { .. }
            | Error::Store(checkpoint::Error::UnknownThread(_)),
        ) => Ok(None),
        read => read.map(Some),
    }
}

fn span_kind(about: &About) -> &'static str {
    match about {
        About::Chat { .. } | About::Tool { .. } => "client",
        _ => "internal",
    }
}

fn meets(spans: &[Span], query: &Query, content: bool) -> bool {
    let labels = dialect::labels(spans.first());
    spans.iter().any(|span| {
        query.operation.as_ref().is_none_or(|name| *name == span.name)
            && query.after.is_none_or(|after| span.start >= after)
            && query.before.is_none_or(|before| span.start <= before)
            && query.shortest.is_none_or(|shortest| span.duration() >= shortest)
            && query.longest.is_none_or(|longest| span.duration() <= longest)
            && (query.tags.is_empty() || tagged(span, &labels, &query.tags, content))
    })
}

fn tagged(span: &Span, labels: &[KeyValue], tags: &[(String, String)], content: bool) -> bool {
    let attributes = dialect::attributes(span, content);
    tags.iter().all(|(name, value)| match name.as_str() {
        "error" => *value == span.failed().to_string(),
        "span.kind" => value == span_kind(&span.about),
        _ => attributes
            .iter()
            .chain(labels)
            .any(|one| one.key.as_str() == name && one.value.as_str() == value.as_str()),
    })
}
