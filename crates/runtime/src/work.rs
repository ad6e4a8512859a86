//! Leaves runs to the workers, and does a worker's part.

use std::sync::Arc;

use super::report::RunStatusView;
use super::{DEMO_TENANT, Error, RunReport, Runtime};
use crate::dispatch::{self, Dispatcher, Scope};
use perihelion_engine::checkpoint::{self, ThreadInfo};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::RunOptions;
use perihelion_star::{GRAPH, GraphState, Request};

impl Runtime {
    /// Asks a thread a question, making the thread when it is new, and leaves the run to the workers.
    ///
    /// When this returns, the question and the call to the workers are durable.
    ///
    /// # Errors
    /// As [`Runtime::ask`].
    pub async fn submit(
        &self,
        thread: ThreadId,
        title: Option<String>,
        request: Request,
    ) -> Result<RunReport, Error> {
        let input = self.input(thread, title, request).await?;
        let run = self.runner().submit(thread, input).await?;
        Ok(RunReport::of(thread, run.to_string(), RunStatusView::Queued, &GraphState::default()))
    }

    /// Resumes a thread that was left to the workers, or whose process died.
    ///
    /// `None` when there is nothing to do for this worker: the thread is at rest, waits for a person, has a
    /// holder, is another graph's or the demo's, or is no more.
    ///
    /// # Errors
    /// [`Error::Run`] when the thread cannot be read or its run broke on the store.
    pub async fn wake(
        &self,
        thread: ThreadId,
        options: RunOptions<GraphState>,
    ) -> Result<Option<RunReport>, Error> {
        let info = match self.store().info(thread).await {
            Ok(info) if info.tenant == DEMO_TENANT => return Ok(None),
            Ok(info) => info,
            Err(checkpoint::Error::UnknownThread(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if info.graph == GRAPH {
            self.load_teams(&info.tenant).await;
        }
        // Until then another worker may take it.
        self.await_agents(thread, &options.cancel).await?;
        match self.woken(&info, options).await {
            Err(Error::UnknownGraph(_)) => Ok(None),
            other => other,
        }
    }

    /// Resumes a thread of any graph that was left to the workers, or whose process died.
    pub(super) async fn woken(
        &self,
        info: &ThreadInfo,
        options: RunOptions<GraphState>,
    ) -> Result<Option<RunReport>, Error> {
        if let Some(graph) = self.graph_beside(&info.graph)? {
            let ended = graph.wake(info.id, options).await?;
            return Ok(ended.map(|ended| self.report_of_own(&ended)));
        }
        match self.runner().wake(info.id, options).await? {
            Some(outcome) => self.report(outcome).await.map(Some),
            None => Ok(None),
        }
    }

    /// Opens what tells a worker of this runtime which threads to continue with.
    ///
    /// A `thorough` one looks at every turn: when it knows of no thread, nothing is left to do.
    ///
    /// # Errors
    /// As [`dispatch::open`].
    pub fn dispatcher(&self, thorough: bool) -> Result<Arc<Dispatcher>, Error> {
        let scope = Scope {
            graphs: self.graph_names(),
            except_tenant: Some(DEMO_TENANT.to_owned()),
            thorough,
        };
        let url = self.settings().store.database.expose();
        Ok(dispatch::open(url, self.store().clone(), scope)?)
    }
}
