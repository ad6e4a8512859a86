//! The runs of a task: those that its messages began, and those that answered its questions on any face.

use std::collections::HashSet;

use async_trait::async_trait;
use serde_json::Value;
use uuid::Uuid;

use super::push;
use crate::http::Refusal;
use perihelion_service::kept::{NewDelivery, Run, RunFilter};
use perihelion_service::{Accept, Error, Followers, Order, Service};

/// Runs of a thread that are looked through.
const MOST: u32 = 1_000;

/// Which clarifications were answered so far, so that of two messages that were sent at once the first is the answer.
#[derive(Default)]
pub(super) struct Answered(HashSet<Uuid>);

impl Answered {
    /// Returns whether a run that began after those asked about before continues a task that its thread is at.
    pub(super) fn continues(&mut self, run: &Run, task: Uuid) -> bool {
        let is_named = names(run, task);
        if !is_named && run.metadata["a2a"].is_object() {
            return false;
        }
        let Ok(order) = Order::of(run) else { return true };
        let is_first = order.clarifies.is_some_and(|question| self.0.insert(question));
        is_named || !order.asked.is_turn() || is_first
    }
}

/// Returns the runs of a thread, newest first.
pub(super) async fn of_thread(service: &Service, thread: Uuid) -> Result<Vec<Run>, Error> {
    let filter = RunFilter { status: None, limit: MOST, offset: 0 };
    Ok(service.kept().runs(thread, &filter).await?)
}

/// Finds the runs of a task, oldest first.
pub(super) fn of_task<'a>(first: &Run, newest_first: &'a [Run]) -> Vec<&'a Run> {
    let mut answered = Answered::default();
    let mut runs = Vec::new();
    let mut is_newest_task = true;
    for run in newest_first.iter().rev().skip_while(|run| run.id != first.id) {
        let is_own = run.id == first.id || names(run, first.id);
        if is_own || (is_newest_task && answered.continues(run, first.id)) {
            runs.push(run);
        } else {
            is_newest_task = false;
        }
    }
    runs
}

/// Returns the task that a run's message began or continued.
pub(super) fn task_of(run: &Run) -> Option<Uuid> {
    let text = run.metadata["a2a"].as_object()?;
    let first = text.get("task").and_then(Value::as_str).and_then(|id| id.parse().ok());
    Some(first.unwrap_or(run.id))
}

/// Tells the addresses of a task of runs that continue it and that no message of A2A began.
pub(crate) struct TaskAddresses;

#[async_trait]
impl Followers for TaskAddresses {
    async fn of_next(&self, service: &Service, next: &Accept) -> Result<Vec<NewDelivery>, Error> {
        // A message of A2A has named them.
        if next.order.begins_turn() || next.metadata["a2a"].is_object() {
            return Ok(Vec::new());
        }
        let all = of_thread(service, next.thread.0).await?;
        let Some(task) = newest(all.iter()) else { return Ok(Vec::new()) };
        match push::of_task(service, task).await {
            Ok(deliveries) => Ok(deliveries),
            Err(Refusal(_, why)) => {
                tracing::warn!(%task, %why, "an answer is not delivered to a push address");
                Ok(Vec::new())
            }
        }
    }
}

/// Returns the task that a run is of, no matter who began the run.
pub(super) async fn at(service: &Service, run: &Run) -> Result<Option<Uuid>, Error> {
    let all = of_thread(service, run.thread).await?;
    Ok(newest(all.iter().skip_while(|one| one.id != run.id)))
}

/// Returns the task that a thread is at by its runs, newest first.
fn newest<'a>(mut newest_first: impl Iterator<Item = &'a Run>) -> Option<Uuid> {
    let begun = newest_first.find(|run| task_of(run).is_some() || !continues_any(run));
    begun.and_then(task_of)
}

fn continues_any(run: &Run) -> bool {
    !Order::of(run).is_ok_and(|order| order.begins_turn())
}

fn names(run: &Run, task: Uuid) -> bool {
    run.metadata["a2a"]["task"].as_str() == Some(&task.to_string())
}
