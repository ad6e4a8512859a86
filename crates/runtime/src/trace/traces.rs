//! The history of threads: read as traces, and compared.

use std::sync::Arc;

use super::{Error, Trace, TraceHead, panels, view};
use crate::{Runtime, Served, Threads};
use perihelion_engine::checkpoint::{self, Store};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::ReplayReport;
use perihelion_settings::config::Settings;
use perihelion_telemetry::history::{self, Comparison};
use perihelion_telemetry::reading::{self, Event};
use perihelion_telemetry::{TraceId, View, Which, bill, project, read};

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
        let analyses = panels::analyses(store, thread, &spans).await?;
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

    /// Compares two threads, or runs of them, step by step.
    pub async fn compare(
        &self,
        one: (ThreadId, Option<u32>),
        other: (ThreadId, Option<u32>),
    ) -> Result<Comparison, Error> {
        Ok(history::compare(self.store.as_ref(), one, other).await?)
    }
}
