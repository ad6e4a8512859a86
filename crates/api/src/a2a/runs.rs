//! The runs of a task: those of its messages, and those of answers to its questions in any API.

use std::collections::HashSet;

use async_trait::async_trait;
use serde_json::Value;
use uuid::Uuid;

use super::push;
use crate::http::Refusal;
use perihelion_service::kept::{NewDelivery, Run, RunFilter};
use perihelion_service::{Accept, Error, Followers, Order, Service};

/// Runs of a task that are looked through, with those of later tasks.
const MOST: u32 = 1_000;

/// Runs of a thread that are read at a time to find the task that it is at, which is that of the newest as a rule.
const PAGE: u32 = 16;

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

/// Returns the first run of a task and the later ones of its thread, newest first; of very many the earlier ones, among
/// which the task's own are.
pub(super) async fn since(service: &Service, first: &Run) -> Result<Vec<Run>, Error> {
    let mut runs = service.kept().runs_since(first, MOST).await?;
    runs.reverse();
    Ok(runs)
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

pub(super) fn task_of(run: &Run) -> Option<Uuid> {
    let text = run.metadata["a2a"].as_object()?;
    let first = text.get("task").and_then(Value::as_str).and_then(|id| id.parse().ok());
    Some(first.unwrap_or(run.id))
}

/// Notifies the addresses of a task about runs that continue it and that no A2A message began.
pub(crate) struct TaskAddresses;

#[async_trait]
impl Followers for TaskAddresses {
    async fn of_next(&self, service: &Service, next: &Accept) -> Result<Vec<NewDelivery>, Error> {
        // A message of A2A has named them.
        if next.metadata["a2a"].is_object() {
            return Ok(Vec::new());
        }
        let Some(task) = newest(service, next.thread.0, None).await? else { return Ok(Vec::new()) };
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
    newest(service, run.thread, Some(run.id)).await
}

/// Returns the task that a thread is at, or was at when a run of it began.
async fn newest(
    service: &Service,
    thread: Uuid,
    mut upto: Option<Uuid>,
) -> Result<Option<Uuid>, Error> {
    for page in 0.. {
        let filter = RunFilter { status: None, limit: PAGE, offset: page * PAGE };
        let runs = service.kept().runs(thread, &filter).await?;
        for run in &runs {
            upto.take_if(|upto| *upto == run.id);
            if upto.is_none() && (task_of(run).is_some() || !continues_any(run)) {
                return Ok(task_of(run));
            }
        }
        if runs.len() < PAGE as usize {
            break;
        }
    }
    Ok(None)
}

fn continues_any(run: &Run) -> bool {
    !Order::of(run).is_ok_and(|order| order.begins_turn())
}

fn names(run: &Run, task: Uuid) -> bool {
    run.metadata["a2a"]["task"].as_str() == Some(&task.to_string())
}
