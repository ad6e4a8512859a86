//! Gives a thread a new turn in any status, and edits it at its head.

use std::sync::Arc;

use super::{Answer, Edit, Error, RunReport, Runtime};
use perihelion_engine::checkpoint::ThreadStatus;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::RunOptions;
use perihelion_star::question::kind::CLARIFICATION;
use perihelion_star::{GraphState, Request};
use serde_json::json;
use tracing::Instrument as _;

impl Runtime {
    /// Asks a thread a question in any status: the answer to its one open clarification, or a new turn.
    ///
    /// The remaining work of an unfinished turn is abandoned, with its questions.
    ///
    /// # Errors
    /// As [`Runtime::ask`]; [`Error::Store`] if another process holds the thread.
    pub async fn take_turn(
        &self,
        thread: ThreadId,
        request: Request,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        let info = self.store().info(thread).await?;
        if info.status == ThreadStatus::Interrupted {
            let open = self.runner().open_interrupts(thread).await?;
            if let [one] = open.as_slice()
                && one.kind == CLARIFICATION
            {
                let answer = Answer::Message(request.question);
                return self.answer_and_continue(thread, Some(one.id), answer, options).await;
            }
        }
        self.new_turn(&info.graph, &info.tenant, thread, request, options).await
    }

    /// Begins a turn of a thread of a graph, whatever remains of an earlier one.
    pub(super) async fn new_turn(
        &self,
        graph: &str,
        tenant: &str,
        thread: ThreadId,
        request: Request,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        let graph = self.graph_to_run(graph, tenant).await?;
        let input = request.into_input(&self.agent_names(tenant))?;
        self.report(graph.start(thread, json!(input), options).await?).await
    }

    /// Returns a thread to an earlier step, and returns its new head.
    ///
    /// The work ends even if its caller does not wait for it, as in [`Runtime::edit`].
    pub async fn go_back(&self, thread: ThreadId, to: u64) -> Result<u64, Error> {
        let graph = Arc::clone(self.graph_of(thread).await?);
        to_its_end(async move { graph.go_back(thread, to).await }).await
    }

    /// Edits the state of a thread of any graph, as if a node had written it.
    ///
    /// The work ends even if its caller does not wait for it: a worker would run a thread with an unfinished edit.
    pub async fn edit(&self, thread: ThreadId, edit: Edit) -> Result<u64, Error> {
        let graph = Arc::clone(self.graph_of(thread).await?);
        let bus = Arc::clone(self.bus());
        to_its_end(async move {
            let step = graph.edit(thread, edit).await?;
            bus.call(thread).await;
            Ok::<_, Error>(step)
        })
        .await
    }
}

/// Makes a change in a separate task, which finishes even if the caller's future is dropped.
pub async fn to_its_end<T: Send + 'static>(change: impl Future<Output = T> + Send + 'static) -> T {
    let ended = tokio::spawn(change.in_current_span()).await;
    // A panic continues in the caller, as it would without a task.
    ended.unwrap_or_else(|lost| std::panic::resume_unwind(lost.into_panic()))
}

#[cfg(test)]
mod tests {
    use super::to_its_end;

    #[tokio::test]
    async fn a_panic_of_a_change_continues_in_its_caller() {
        let caller = tokio::spawn(to_its_end::<()>(async { panic!("the change panicked") }));
        let panic = caller.await.unwrap_err().into_panic();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the change panicked"));
    }
}
