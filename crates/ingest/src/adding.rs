//! The graph that adds a document, and the thread that drives it.

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::nodes::{self, WorkUpdate};
use crate::{DocumentThreads, Error, Work};
use perihelion_documents::{Prepared, Step};
use perihelion_engine::checkpoint;
use perihelion_engine::graph::{BuildError, Context, EngineError, Graph, GraphBuilder, node_fn};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{self, INPUT, RunOptions, RunOutcome, RunResult, Runner};

pub type Listener = Arc<dyn Fn(Step) + Send + Sync>;

/// Reads a document's bytes by its path.
pub type Reading = Arc<dyn Fn(&str) -> std::io::Result<Vec<u8>> + Send + Sync>;

pub(super) struct Parts {
    pub documents: DocumentThreads,
    pub read: Reading,
    pub listener: Listener,
    pub thread: ThreadId,
    /// The document, which this process parses once.
    pub prepared: OnceCell<Prepared>,
}

/// Adds a document on its thread, or continues the work of an earlier process.
pub(super) async fn run(
    parts: Parts,
    input: WorkUpdate,
    title: Option<&str>,
    path: &str,
) -> Result<RunOutcome<Work>, Error> {
    let thread = parts.thread;
    let options = RunOptions { cancel: parts.documents.stop.clone(), ..RunOptions::default() };
    let store = Arc::clone(&parts.documents.store);
    let tenant = parts.documents.library.scope().tenant().into();
    let mut runner = Runner::new(graph(Arc::new(parts))?, store);
    runner.tenant = tenant;
    let is_new = match runner.store().info(thread).await {
        Ok(info) => info.head == 0,
        Err(checkpoint::Error::UnknownThread(_)) => {
            let title = Some(format!("document {path}"));
            let tenant = &runner.tenant;
            return Ok(runner.start_new(tenant, thread, title, input, options).await?);
        }
        Err(error) => return Err(error.into()),
    };
    if !is_new {
        let begun = runner.state(thread, None).await?;
        if !begun.next.is_empty() && begun.state.title.as_deref() != title {
            // What an earlier attempt made of the document has the title that it was given.
            runner.update_state(thread, input.clone(), INPUT).await?;
        }
        match runner.resume(thread, options.clone()).await {
            Err(runner::Error::Finished { .. } | runner::Error::NeverAsked { .. }) => {}
            resumed => return Ok(resumed?),
        }
    }
    Ok(runner.start(thread, input, options).await?)
}

/// The reason for unfinished work after a signal.
pub(super) const STOPPED: &str = "stopped; the same command continues";

pub(super) fn failure(outcome: &RunOutcome<Work>) -> Option<String> {
    match &outcome.result {
        RunResult::Done => None,
        // Without the name of the node, which is internal.
        RunResult::Failed(EngineError::Node { message, .. }) => Some(message.clone()),
        RunResult::Failed(error) => Some(error.to_string()),
        RunResult::Cancelled => Some(STOPPED.to_owned()),
        other => Some(format!("{other:?}")),
    }
}

fn graph(parts: Arc<Parts>) -> Result<Arc<Graph<Work>>, BuildError> {
    macro_rules! node {
        ($function:path) => {{
            let parts = Arc::clone(&parts);
            node_fn(move |ctx: Context<Work>| $function(Arc::clone(&parts), ctx))
        }};
    }
    GraphBuilder::new("document")
        .node("parse", node!(nodes::parse))
        .node("describe", node!(nodes::describe))
        .node("embed", node!(nodes::embed))
        .node("keep", node!(nodes::keep))
        .entry("parse")
        .edge("parse", "describe")
        .edge("describe", "embed")
        .edge("embed", "keep")
        .build()
}
