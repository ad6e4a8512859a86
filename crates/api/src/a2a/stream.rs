//! A task as it continues.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::runs::Answered;
use super::shapes;
use super::state::State;
use super::tasks::{self, Task};
use crate::conversation::{AnswerPart, Conversation};
use crate::event_stream::{self, Followed, following};
use perihelion_engine::ids::ThreadId;
use perihelion_service::{BegunRuns, Service};

/// Begins a task, or continues one, and follows its run to the end; with an ID each event is an answer of JSON-RPC.
pub(super) async fn begin(
    service: &Service,
    send: tasks::Send,
    id: Option<Value>,
) -> Result<Response, Refusal> {
    let (run, task) = tasks::begin(service, send).await?;
    let task = tasks::found(service, &task.to_string()).await?;
    let conversation = Conversation::follow(service, run);
    Ok(Streamed::new(service, task, Some(conversation), id).response())
}

/// Follows an existing task over all its runs, until it cannot continue.
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
    let conversation = match task.state {
        // The task contains the question.
        State::InputRequired => None,
        _ => Some(Conversation::follow(service, run)),
    };
    let later = service.begun_runs(ThreadId(task.context), 0);
    let streamed = Streamed::new(service, task, conversation, rpc);
    Ok(Streamed { later: Some(later), ..streamed }.response())
}

struct Streamed {
    service: Service,
    task: Task,
    conversation: Option<Conversation>,
    /// Finds the later runs, if they are followed too.
    later: Option<BegunRuns>,
    answered: Answered,
    /// Whether `later` has come to the run that was followed first.
    has_passed: bool,
    /// The run that is followed has ended, which was not shown yet.
    has_ended: bool,
    is_over: bool,
    id: Option<Value>,
    /// The text of the artifact that was sent.
    sent: String,
    ready: Vec<Bytes>,
}

impl Streamed {
    fn new(
        service: &Service,
        task: Task,
        conversation: Option<Conversation>,
        id: Option<Value>,
    ) -> Self {
        let shown = json!({ "task": shapes::task(&task) });
        let mut streamed = Self {
            service: service.clone(),
            task,
            conversation,
            later: None,
            answered: Answered::default(),
            has_passed: false,
            has_ended: false,
            is_over: false,
            id,
            sent: String::new(),
            ready: Vec::new(),
        };
        streamed.put(shown);
        streamed
    }

    fn response(mut self) -> Response {
        let first = stream::iter(std::mem::take(&mut self.ready));
        let service = self.service.clone();
        event_stream::response(HeaderMap::new(), first.chain(following(&service, self)))
    }

    fn put(&mut self, event: Value) {
        let shown = match &self.id {
            Some(id) => json!({ "jsonrpc": "2.0", "id": id, "result": event }),
            None => event,
        };
        self.ready.push(event_stream::data(&shown.to_string()));
    }

    /// Receives one event; it can be dropped at any time without losing events.
    async fn hear(&mut self) -> Result<(), Refusal> {
        if self.has_ended {
            return self.show_end().await;
        }
        let Some(conversation) = &mut self.conversation else { return self.wait().await };
        match conversation.next().await {
            // The status that follows contains the question.
            Some(AnswerPart::Started(_)) => {}
            Some(AnswerPart::Piece(_)) if conversation.asks() => {}
            Some(AnswerPart::Piece(text)) => {
                if self.task.state != State::Working {
                    self.task.state = State::Working;
                    self.put(shapes::status_update(&self.task));
                }
                self.put(shapes::piece(&self.task, &text, self.sent.is_empty()));
                self.sent.push_str(&text);
            }
            Some(AnswerPart::End(_)) | None => self.has_ended = true,
        }
        Ok(())
    }

    async fn show_end(&mut self) -> Result<(), Refusal> {
        let task = tasks::found(&self.service, &self.task.id.to_string()).await?;
        let has_moved = task.state.is_over() || task.state == State::InputRequired;
        self.task = task;
        // Of several messages the last one is the answer.
        let answer = self.task.text.clone().filter(|_| self.task.state == State::Completed);
        let is_other = |text: &String| !self.sent.is_empty() && *text != self.sent;
        if let Some(answer) = answer.filter(is_other) {
            self.put(shapes::piece(&self.task, &answer, true));
        }
        self.conversation = None;
        self.has_ended = false;
        if has_moved {
            self.put(shapes::status_update(&self.task));
        }
        self.is_over = self.task.state.is_over() || self.later.is_none();
        Ok(())
    }

    async fn wait(&mut self) -> Result<(), Refusal> {
        let Some(later) = &mut self.later else {
            self.is_over = true;
            return Ok(());
        };
        let Some(run) = later.next().await? else { return self.look_again().await };
        let continues = self.answered.continues(&run, self.task.id);
        if self.has_passed && continues {
            // Nothing waits here, so that no run is passed over.
            self.conversation = Some(Conversation::follow(&self.service, run));
            self.sent.clear();
        } else {
            self.has_passed |= run.id == self.task.run;
        }
        Ok(())
    }

    /// Looks whether the task moved without a run of the service, as the command line moves it.
    async fn look_again(&mut self) -> Result<(), Refusal> {
        let task = tasks::found(&self.service, &self.task.id.to_string()).await?;
        // A run of the service is heard piece by piece.
        if task.run == self.task.run && task.state != self.task.state {
            self.task = task;
            self.put(shapes::status_update(&self.task));
            self.is_over = self.task.state.is_over();
        }
        Ok(())
    }
}

impl Followed for Streamed {
    type Error = Refusal;

    async fn advance(&mut self) -> Result<Option<Vec<Bytes>>, Refusal> {
        if self.is_over {
            return Ok(None);
        }
        self.hear().await?;
        Ok(Some(std::mem::take(&mut self.ready)))
    }
}
