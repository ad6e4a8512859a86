//! A task as it continues.

use std::collections::VecDeque;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use perihelion_http::sse;
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::shapes;
use super::tasks::{self, State, Task};
use crate::api::conversation::{Conversation, Said};
use crate::api::event_stream;
use crate::service::Service;
use crate::service::kept::Run;

/// Follows a run of a task to its end; with an id each event is an answer of JSON-RPC.
pub(super) async fn follow(
    service: &Service,
    run: Run,
    task: Task,
    id: Option<Value>,
) -> Result<Response, Refusal> {
    let conversation = Conversation::follow(service, run).await?;
    let mut streamed = Streamed { conversation, task, id, pieces: 0, ready: VecDeque::new() };
    streamed.put(json!({ "task": shapes::task(&streamed.task) }));
    let stream = futures::stream::unfold(streamed, |mut streamed| async move {
        let bytes = streamed.next().await?;
        Some((Ok::<_, std::convert::Infallible>(bytes), streamed))
    });
    Ok(event_stream::response(HeaderMap::new(), stream))
}

struct Streamed {
    conversation: Conversation,
    task: Task,
    id: Option<Value>,
    pieces: usize,
    ready: VecDeque<Bytes>,
}

impl Streamed {
    fn put(&mut self, event: Value) {
        let shown = match &self.id {
            Some(id) => json!({ "jsonrpc": "2.0", "id": id, "result": event }),
            None => event,
        };
        self.ready.push_back(sse::data(&shown.to_string()));
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            match self.conversation.next().await? {
                Said::Piece(text) => {
                    if self.task.state == State::Submitted {
                        self.task.state = State::Working;
                        let event = shapes::status_update(&self.task);
                        self.put(event);
                    }
                    let event = shapes::piece(&self.task, &text, self.pieces == 0, false);
                    self.pieces += 1;
                    self.put(event);
                }
                Said::End(outcome) => {
                    self.task.state = match (&outcome.error, outcome.asks) {
                        (Some(_), _) => State::Failed,
                        (None, true) => State::InputRequired,
                        (None, false) => State::Completed,
                    };
                    self.task.text = Some(outcome.error.unwrap_or(outcome.text));
                    self.task.at = crate::clock::now();
                    let event = shapes::status_update(&self.task);
                    self.put(event);
                }
            }
        }
    }
}

/// Follows a task that was begun before.
pub(super) async fn join(
    service: &Service,
    id: &str,
    rpc: Option<Value>,
) -> Result<Response, Refusal> {
    let task = tasks::found(service, id).await?;
    if task.state.is_over() {
        return Err(Refusal::Unsupported(format!("the task has ended: {id}")));
    }
    let run = service.kept().find_run(task.run).await?;
    let run = run.ok_or_else(|| Refusal::TaskNotFound(id.to_owned()))?;
    follow(service, run, task, rpc).await
}
