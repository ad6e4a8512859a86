//! A run as a conversation: what is said piece by piece, and how it ends.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::agent_server::Refusal;
use super::{questions, team};
use crate::graph::Interrupt;
use crate::ids::ThreadId;
use crate::llm::Usage;
use crate::service::kept::{Multitask, NewDelivery, Run, RunStatus};
use crate::service::{
    Accept, Asked, ClientStatus, From, Happening, Listener, Next, Order, Service, Turn,
};
use crate::swarm::question::kind;
use crate::swarm::{GraphState, node_names};

/// How a run ended.
#[derive(Clone, Debug)]
pub(in crate::api) struct Outcome {
    /// The answer, or the question that waits for one.
    pub text: String,
    /// Whether a person is asked something.
    pub asks: bool,
    /// The turn of the thread that it belongs to.
    pub turn: u32,
    pub error: Option<String>,
    pub usage: Usage,
}

/// What was said next.
#[derive(Clone, Debug)]
pub(in crate::api) enum AnswerPart {
    Piece(String),
    End(Outcome),
}

/// A run that is followed.
pub(in crate::api) struct Conversation {
    service: Service,
    listener: Listener,
    state: Arc<GraphState>,
    questions: Vec<Interrupt>,
    said: String,
    ready: VecDeque<AnswerPart>,
    is_over: bool,
}

/// What a run is begun with.
pub(in crate::api) struct Begin {
    pub thread: ThreadId,
    /// The step that the thread goes back to first.
    pub at: Option<u64>,
    pub turn: Turn,
    pub metadata: Value,
    /// What is sent when it has ended.
    pub deliveries: Vec<NewDelivery>,
}

/// Begins a run: an answer to what the thread waits for, or a turn of its own; a team's thread stays the team's, unless
/// the turn names another one.
pub(in crate::api) async fn begin(service: &Service, begin: Begin) -> Result<Run, Refusal> {
    let Begin { thread, at, mut turn, metadata, deliveries } = begin;
    let view = service.thread(thread).await?;
    turn.team = match turn.team {
        Some(name) => Some(team::named(service, &name).await?),
        None => team::of_thread(service, &view, at).await?,
    };
    service.runtime().check_request(service.tenant(), turn.request()).await?;
    let shown = json!({ "input": { "messages": [{ "role": "user", "content": turn.question }] } });
    let team = turn.team.clone();
    let assistant = team::assistant(&view, team.as_deref());
    let waits = at.is_none() && view.status == ClientStatus::Interrupted;
    let asked = if waits && view.open.iter().any(|one| one.kind != kind::CLARIFICATION) {
        Asked::Resume(answer(&turn.question))
    } else {
        Asked::Turn(turn)
    };
    let order = Order { at: at.filter(|at| *at != view.info.head), ..Order::new(asked) };
    let accept = Accept {
        thread,
        assistant,
        order,
        shown,
        metadata,
        multitask: Multitask::Enqueue,
        temporary: false,
        due_at: None,
        deliveries,
    };
    let run = service.accept(accept).await?;
    // Not before: a run that is refused changes nothing of its thread.
    team::note(service, &view, team.as_deref()).await?;
    Ok(run)
}

/// Reads an answer that a person typed: JSON where it is an object, and the text otherwise.
fn answer(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::String(text.trim().to_owned()),
    }
}

impl Conversation {
    pub(in crate::api) async fn follow(service: &Service, run: Run) -> Result<Self, Refusal> {
        Ok(Self::over(service, service.listen(run, From::Beginning).await?))
    }

    /// Follows a run without looking for it first.
    pub(in crate::api) fn of(service: &Service, run: Run) -> Self {
        Self::over(service, service.listen_from_beginning(run))
    }

    fn over(service: &Service, listener: Listener) -> Self {
        Self {
            service: service.clone(),
            listener,
            state: Arc::default(),
            questions: Vec::new(),
            said: String::new(),
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    /// Returns whether a person is asked something by now.
    pub(in crate::api) fn asks(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Waits for what is said next; `None` when all was said, or this process ends.
    pub(in crate::api) async fn next(&mut self) -> Option<AnswerPart> {
        loop {
            if let Some(said) = self.ready.pop_front() {
                return Some(said);
            }
            if self.is_over {
                return None;
            }
            let stop = self.service.stop().clone();
            let next = tokio::select! {
                next = self.listener.next() => next,
                () = stop.cancelled() => { self.end(Some("this server ends; ask it for the response again".into())); continue }
            };
            match next {
                Ok(Next::Heard(heard)) => self.hear(heard.happening),
                Ok(Next::Ended(run)) => {
                    let why = run
                        .error
                        .as_ref()
                        .and_then(|why| why["message"].as_str().map(str::to_owned));
                    let why = why.or_else(|| {
                        (run.status == RunStatus::Interrupted)
                            .then(|| "the run was cancelled".into())
                    });
                    self.end(why);
                }
                Ok(Next::Gone) => self.end(Some("the run is no more".into())),
                Err(error) => self.end(Some(error.to_string())),
            }
        }
    }

    /// Waits for the end.
    pub(in crate::api) async fn outcome(mut self) -> Outcome {
        loop {
            match self.next().await {
                Some(AnswerPart::End(outcome)) => return outcome,
                Some(AnswerPart::Piece(_)) => {}
                None => {
                    let error = Some("nothing was said".into());
                    return Outcome {
                        text: String::new(),
                        asks: false,
                        turn: 0,
                        error,
                        usage: Usage::default(),
                    };
                }
            }
        }
    }

    fn hear(&mut self, happening: Happening) {
        let [_, _, answering] = node_names();
        match happening {
            // A message that begins again is sent whole at the end.
            Happening::Piece { node, piece, is_first, .. }
                if node == answering && (!is_first || self.said.is_empty()) =>
            {
                self.said.push_str(&piece);
                self.ready.push_back(AnswerPart::Piece(piece));
            }
            Happening::Step(at) => self.state = at.state,
            Happening::StandsAt { state } => self.state = state,
            Happening::Interrupted { interrupts, state, .. } => {
                self.questions = interrupts;
                self.state = state;
            }
            _ => {}
        }
    }

    fn end(&mut self, error: Option<String>) {
        self.is_over = true;
        let asks = !self.questions.is_empty();
        let text = if asks {
            questions::in_words(&self.questions)
        } else {
            self.state.answer.clone().unwrap_or_default()
        };
        let text = if text.is_empty() { self.said.clone() } else { text };
        // What was not sent piece by piece: a question, or the end of an answer.
        if let Some(rest) = text.strip_prefix(self.said.as_str()).filter(|rest| !rest.is_empty()) {
            self.ready.push_back(AnswerPart::Piece(rest.to_owned()));
        }
        let usage = self.state.usage_of_turn();
        self.ready.push_back(AnswerPart::End(Outcome {
            text,
            asks,
            turn: self.state.turn,
            error,
            usage,
        }));
    }
}

/// Finds where a thread stood after a run: none while nothing came after it.
pub(in crate::api) async fn stood_after(
    service: &Service,
    run: &Run,
) -> Result<Option<u64>, Refusal> {
    let filter = crate::service::kept::RunFilter { status: None, limit: 1_000, offset: 0 };
    let later = service.kept().runs(run.thread, &filter).await?;
    let later = later.iter().rev().find(|one| (one.created_at, one.id) > (run.created_at, run.id));
    Ok(later.and_then(|one| one.base_step))
}

/// Reads the id of a response or completion.
pub(in crate::api) fn run_of(id: &str, prefix: &str) -> Option<Uuid> {
    id.strip_prefix(prefix).and_then(|id| Uuid::parse_str(id).ok())
}
