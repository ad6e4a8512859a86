//! Leaves runs to the workers, and does a worker's part.

use std::sync::Arc;

use super::report::RunStatusView;
use super::{DEMO_TENANT, Error, RunReport, Runtime};
use crate::dispatch::{self, Dispatcher, Scope};
use perihelion_engine::checkpoint::{self, ThreadInfo};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::RunOptions;
use perihelion_star::{GraphState, Request};

impl Runtime {
    /// Asks a thread a question, making the thread when it is new, and leaves the run to the workers.
    ///
    /// When this returns, the question and the call to the workers are durable.
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
    /// `None` if this worker has no work: the thread is idle, waits for a person, has a holder, belongs to another
    /// graph or to the demo, or was deleted.
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
        match self.graph_to_run(info).await?.wake(info.id, options).await? {
            Some(ended) => self.report(ended).await.map(Some),
            None => Ok(None),
        }
    }

    /// Opens the source of threads for a worker of this runtime.
    ///
    /// A `thorough` one polls every time: if it finds no thread, no work is left.
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
