//! Answers to open questions: each is stored as a run of its thread, so its consequences are in the stream of a run.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use super::kept::{Multitask, Position, Run, RunFilter};
use super::order::assistant_of;
use super::{Accept, Asked, Error, Order, Result, Service, ThreadView, answers};
use perihelion_engine::checkpoint::{self, ThreadStatus};
use perihelion_engine::clock;
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_runtime::{self as runtime, Answer, AnswerError, InterruptView};

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Answers to one question that were not recorded; after these, only the command line can answer it.
const MOST: u32 = 16;

/// How long a client waits for it; an accepted answer is stored in any case.
const PATIENCE: Duration = Duration::from_secs(5);

impl Service {
    /// Keeps an answer to an open question as a run that records it and continues, and waits until it is recorded.
    ///
    /// A question takes one answer: the second is refused.
    pub async fn answer(
        &self,
        thread: ThreadId,
        question: InterruptId,
        answer: Answer,
    ) -> Result<Run> {
        let run = self.accept_answer(thread, question, answer).await?;
        let recorded = async {
            while self.run(thread, run.id).await.is_ok_and(|run| !run.status.is_terminal()) {
                match self.runtime().runner().open_interrupts(thread).await {
                    Ok(open) if open.iter().any(|one| one.id == question) => {}
                    _ => return,
                }
                clock::sleep(LOOK_EVERY).await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, recorded).await;
        Ok(run)
    }

    /// Finds an open question of the tenant by its id, with the thread that waits for its answer.
    pub async fn asked(&self, id: &str) -> Result<Option<(ThreadView, InterruptView)>> {
        use ThreadStatus::{Busy, Interrupted, Queued};
        let Ok(question) = id.parse::<InterruptId>() else { return Ok(None) };
        let store = self.runtime().store();
        let Some(thread) = store.asked_below(question).await.map_err(runtime::Error::from)? else {
            return Ok(None);
        };
        let Some(info) = self.known(thread).await? else { return Ok(None) };
        let view = self.thread_of(info).await?;
        // Others do not continue when their questions are answered.
        let waits = matches!(view.info.status, Interrupted | Busy | Queued);
        let one = view.open.iter().find(|one| waits && one.is(id)).cloned();
        Ok(one.map(|one| (view, one)))
    }

    pub(super) async fn accept_answer(
        &self,
        thread: ThreadId,
        question: InterruptId,
        answer: Answer,
    ) -> Result<Run> {
        let closed = || Error::from(checkpoint::Error::InterruptClosed(question));
        // A run that was cancelled before it recorded its answer leaves the question open.
        let mut attempt = 0_u32;
        let id = loop {
            let id = Uuid::new_v5(&question.0, &attempt.to_be_bytes());
            match self.kept().find_run(id).await? {
                Some(run) if run.status.is_terminal() && attempt < MOST => attempt += 1,
                Some(_) => return Err(closed()),
                None => break id,
            }
        };
        // Before anything is kept that this program could not continue with.
        let target = self.target(thread).await?;
        let graph = self.runtime().graph(&target.graph)?.about().name.clone();
        // Looked at after the runs: one of them may have recorded its answer and ended just now.
        self.runtime().check_answer(thread, question, answer.clone()).await?;
        let last = RunFilter { status: None, limit: 1, offset: 0 };
        let last = self.kept().runs(thread.0, &last).await?.pop();
        let accept = Accept {
            thread,
            assistant: last.map_or_else(|| assistant_of(&graph), |run| run.assistant),
            order: Order::new(Asked::Answer { question: question.0, answer }),
            shown: json!({ "input": null, "command": { "resume": question } }),
            metadata: json!({ "created_by": "system", "graph_id": graph }),
            multitask: Multitask::Enqueue,
            temporary: false,
            due_at: None,
            deliveries: Vec::new(),
        };
        match self.accept_bound(id, accept, &target).await {
            Err(Error::Rows(error)) if error.is_duplicate() => Err(closed()),
            other => other,
        }
    }

    /// Refuses an answer to a question that is closed, or that an open run answers already; returns the position of the
    /// thread for which that is true.
    pub(super) async fn answerable(
        &self,
        thread: ThreadId,
        order: &Order,
    ) -> Result<Option<Position>> {
        let view = self.runtime().threads().view(thread).await?;
        let wanted = answered(&order.asked, &view.open);
        // Answered by another client since it was looked at.
        let closed = match &order.asked {
            Asked::Answer { question, .. } => Some(InterruptId(*question)),
            Asked::Resume(given) => {
                answers::unknown(given, &view.open).and_then(|id| id.parse().ok())
            }
            _ => None,
        };
        if let Some(id) = closed.filter(|_| wanted.is_empty()) {
            return Err(checkpoint::Error::InterruptClosed(id).into());
        }
        let runs = self.kept().open_runs(thread.0).await?;
        for order in runs.iter().filter_map(|run| Order::of(run).ok()) {
            let taken = answered(&order.asked, &view.open);
            if let Some(id) = taken.into_iter().find(|id| wanted.contains(id)) {
                return Err(checkpoint::Error::InterruptClosed(id).into());
            }
        }
        let open = runs.iter().map(|run| run.id).collect();
        Ok((!wanted.is_empty()).then_some(Position { step: view.info.head, open }))
    }

    /// Records an answer; an earlier answer of another client counts.
    pub(super) async fn record(
        &self,
        thread: ThreadId,
        question: Uuid,
        by: Option<&str>,
        answer: Answer,
    ) -> Result<()> {
        let by = if answer == Answer::TimedOut { Some("timeout") } else { by };
        let question = Some(InterruptId(question));
        match self.runtime().answer_by(by, thread, question, answer).await.map_err(Error::from) {
            Err(error) if is_closed(&error) => Ok(()),
            other => other,
        }
    }
}

fn answered(asked: &Asked, open: &[InterruptView]) -> Vec<InterruptId> {
    match asked {
        Asked::Answer { question, .. } => {
            let id = InterruptId(*question);
            let name = id.to_string();
            open.iter().filter(|one| one.is(&name)).map(|_| id).collect()
        }
        Asked::Resume(given) => {
            let read = answers::read(&answers::still_open(given, open), open).unwrap_or_default();
            read.into_iter().map(|(id, _)| id).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns whether an answer had no effect because the question is closed.
pub(super) fn is_closed(error: &Error) -> bool {
    use checkpoint::Error::{InterruptClosed, UnknownThread};
    match error {
        Error::Runtime(runtime::Error::Store(error)) => {
            matches!(error, InterruptClosed(_) | UnknownThread(_))
        }
        Error::Runtime(runtime::Error::Answer(error)) => {
            matches!(error, AnswerError::NothingOpen(_) | AnswerError::NotOpen { .. })
        }
        _ => false,
    }
}
