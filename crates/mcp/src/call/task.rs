//! Follows tasks: calls that a server performs in the background, polled until they end.

use std::collections::BTreeSet;
use std::time::Duration;

use rmcp::ServiceError;
use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientRequest, ErrorCode, GetTaskParams, GetTaskRequest,
    RequestMetaObject, UpdateTaskParams, UpdateTaskRequest,
};
use serde_json::Value;

use super::elicitation;
use super::outcome::{self, Call};
use crate::transport::session::{self, Answer, Bounds, CANCEL, Failure};
use crate::types::{Answers, Reply, Result, TaskHandle, ToolOutcome, text};
use crate::{catalog::listing::Opened, transport::delivery};
use perihelion_clock as clock;

/// How often a server that names no interval is asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// Bounds of the interval that a server can request.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(60);
/// Questions in a row without an answer after which a task counts as lost: half a minute, pauses added up.
const FAILURES: u32 = 7;
/// First pause after a question without an answer; each further one is twice as long.
const PATIENCE: Duration = Duration::from_millis(250);

enum TaskProgress {
    Working { interval: Option<u64> },
    Over(Reply),
}

enum Silence {
    /// Another try may be answered.
    Now(String),
    /// The server does not know it.
    ForGood(String),
}

/// A source of open connections, which reconnects after a loss.
pub(crate) trait Connects: Sync {
    fn opened(&self) -> impl Future<Output = Result<Opened>> + Send;
}

/// A call whose server made a task of it.
pub(crate) struct TaskCall<'a, S> {
    pub call: &'a Call<'a>,
    pub task: &'a TaskHandle,
    /// The server's connection, because a task outlives the connection of its call.
    pub server: &'a S,
}

impl<S: Connects> TaskCall<'_, S> {
    /// Waits until a task ends, or asks something that is not in `answered`.
    pub async fn wait(&self, answered: &BTreeSet<String>) -> Result<Reply> {
        let Self { call, task, .. } = *self;
        let config = call.config;
        let started = clock::monotonic();
        let kept = task.ttl_ms.map_or(Duration::MAX, Duration::from_millis);
        let limit = config.task_timeout.min(kept);
        let mut interval = task.poll_ms;
        let mut failures = 0;
        loop {
            match self.ask_after(answered).await {
                Ok(TaskProgress::Over(reply)) => return Ok(reply),
                Ok(TaskProgress::Working { interval: wished }) => {
                    failures = 0;
                    interval = wished.or(interval);
                }
                Err(Silence::Now(reason)) if failures < FAILURES => {
                    tracing::debug!(server = %config.name, %reason, "cannot read the state of a task");
                    failures += 1;
                }
                Err(Silence::Now(reason) | Silence::ForGood(reason)) => {
                    return Err(call.unknown(&format!("its task {} is lost: {reason}", task.id)));
                }
            }
            let mut pause = interval.map_or(INTERVAL, Duration::from_millis);
            if failures > 0 {
                pause = pause.max(PATIENCE * 2_u32.pow(failures - 1));
            }
            let pause = pause.clamp(SHORTEST, LONGEST);
            if started.elapsed() + pause > limit {
                self.stop().await;
                let seconds = limit.as_secs_f64();
                return Err(call.unknown(&format!(
                    "its task {} did not end within {seconds} s (task_timeout_sec); its cancellation was requested",
                    task.id
                )));
            }
            tokio::select! {
                () = call.closed.cancelled() => {
                    return Err(call.not_sent("the connection was closed while its task ran"));
                }
                () = clock::sleep(pause) => {}
            }
        }
    }

    async fn ask_after(&self, answered: &BTreeSet<String>) -> Result<TaskProgress, Silence> {
        let Self { call, task, server } = *self;
        let opened = server.opened().await;
        let opened = opened.map_err(|error| Silence::Now(error.to_string()))?;
        let params = GetTaskParams::new(task.id.clone());
        let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(params));
        let sent = send(&opened, request, Bounds::of_calls(call.config)).await;
        let Answer { id, result } = sent.map_err(silence)?;
        let answer = serde_json::to_value(result).unwrap_or_default();
        let limit = call.config.max_result_bytes;
        let done = |outcome| {
            let via = Some(opened.via(id.to_string()));
            Ok(TaskProgress::Over(Reply::Done(ToolOutcome { via, ..outcome })))
        };
        let size = text::json_bytes(&answer);
        if size > limit {
            return done(outcome::too_large(call.tool, size, limit));
        }
        let secrets = &call.config.secrets;
        match answer.get("status").and_then(Value::as_str) {
            Some("working") => Ok(TaskProgress::Working {
                interval: answer.get("pollIntervalMs").and_then(Value::as_u64),
            }),
            Some("input_required") => match elicitation::read(&answer, secrets) {
                Ok(mut asked) => {
                    asked.questions.retain(|question| !answered.contains(&question.key));
                    asked.settled.retain(|key, _| !answered.contains(key));
                    if asked.questions.is_empty() && asked.settled.is_empty() {
                        // It has the answers and does not use them yet.
                        return Ok(TaskProgress::Working { interval: None });
                    }
                    asked.task = Some(task.clone());
                    Ok(TaskProgress::Over(Reply::Asked { asked }))
                }
                Err(reason) => {
                    self.stop().await;
                    done(ToolOutcome::failed(format!("{} cannot continue: {reason}", call.tool)))
                }
            },
            Some("completed") => {
                let result = answer.get("result").cloned().unwrap_or_default();
                let output = opened.listing.outputs.get(call.tool).map(AsRef::as_ref);
                done(outcome::complete(call.tool, result, output, secrets))
            }
            Some("failed") => {
                let words = answer.pointer("/error/message").and_then(Value::as_str);
                let words = text::one_line(&secrets.redact(words.unwrap_or("no reason given")));
                done(ToolOutcome::failed(format!("the task of {} failed: {words}", call.tool)))
            }
            Some("cancelled") => {
                done(ToolOutcome::failed(format!("the server cancelled the task of {}", call.tool)))
            }
            _ => Err(Silence::Now("its answer is not the state of a task".into())),
        }
    }

    /// Answers a task's questions; the next wait shows the result.
    pub async fn tell(&self, answers: Answers) -> Result<Reply> {
        let Self { call, task, server } = *self;
        let opened = server.opened().await?;
        let params = UpdateTaskParams::new(task.id.clone(), answers);
        let request = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params));
        let sent = send(&opened, request, Bounds::of_calls(call.config)).await;
        match sent.map_err(silence) {
            // A refusal too: the task has the answers already, or is over, which the next wait shows.
            Ok(_) | Err(Silence::ForGood(_)) => Ok(Reply::Task { task: task.clone() }),
            Err(Silence::Now(reason)) => Err(call.unknown(&reason)),
        }
    }

    async fn stop(&self) {
        let Ok(opened) = self.server.opened().await else { return };
        let params = CancelTaskParams::new(self.task.id.clone());
        let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(params));
        let bounds = Bounds { idle: CANCEL, total: CANCEL };
        let _ = send(&opened, request, bounds).await;
    }
}

async fn send(opened: &Opened, request: ClientRequest, bounds: Bounds) -> Result<Answer, Failure> {
    session::send(&opened.session, request, RequestMetaObject::new(), bounds).await
}

fn silence(failure: Failure) -> Silence {
    match failure {
        Failure::NotHandedOver | Failure::Closed => Silence::Now("the connection closed".into()),
        Failure::TimedOut(limit) => {
            Silence::Now(format!("no answer within {} s", limit.as_secs_f64()))
        }
        Failure::Service(ServiceError::McpError(error)) => {
            let words = text::one_line(&error.message);
            match error.code {
                ErrorCode::INVALID_PARAMS
                | ErrorCode::METHOD_NOT_FOUND
                | ErrorCode::RESOURCE_NOT_FOUND => Silence::ForGood(words),
                // It may be busy, or what is before it.
                _ => Silence::Now(words),
            }
        }
        Failure::Service(other) => Silence::Now(delivery::chain(&other)),
    }
}
