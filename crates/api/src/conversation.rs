//! A run as a conversation: its text piece by piece, and its end.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{questions, team};
use crate::http::Refusal;
use crate::sent_text::SentText;
use perihelion_engine::ids::ThreadId;
use perihelion_llm::Usage;
use perihelion_runtime::{AboutGraph, InterruptView, ThreadState};
use perihelion_service::kept::{Multitask, NewDelivery, Run, RunStatus};
use perihelion_service::{
    Accept, Asked, ClientStatus, Error, Listener, Next, Order, Service, ThreadChange, ThreadView,
    assistant_of,
};
use perihelion_star::question::kind;
use perihelion_star::{FinishReason, GRAPH, GraphState, Message, Request, node_names};

#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// The answer, or the question that waits for one.
    pub text: String,
    pub ending: Ending,
    pub usage: Usage,
    /// Whether the text is only the beginning of an answer, because the model stopped early.
    pub is_cut: bool,
    pub ended_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Answered,
    Asks,
    Failed(String),
    Cancelled,
    /// It has not ended: this process ends, or cannot reach the database for now, and the run continues.
    Continues,
}

/// The message if this process follows a run no longer.
pub(crate) const CONTINUES: &str =
    "the run continues, but this server cannot follow it for now; request its result again";

#[derive(Clone, Debug)]
pub(crate) enum AnswerPart {
    Started(String),
    Piece(String),
    End(Outcome),
}

pub(crate) struct Conversation {
    service: Service,
    listener: Listener,
    /// The position of the thread at the newest event.
    state: Option<ThreadState>,
    questions: Vec<InterruptView>,
    sent: SentText,
    ended_at: Option<DateTime<Utc>>,
    ready: VecDeque<AnswerPart>,
    is_over: bool,
}

pub(crate) struct Begin {
    pub thread: ThreadId,
    /// Whether the thread was made for the run, so that it goes if the run is refused.
    pub is_new: bool,
    /// The step that the thread goes back to first.
    pub at: Option<u64>,
    pub metadata: Value,
    /// Whether the thread is deleted after the run.
    pub temporary: bool,
    pub deliveries: Vec<NewDelivery>,
}

impl Begin {
    /// Describes a run on a thread, which may be new, with no other options.
    pub(crate) fn on((thread, is_new): (ThreadId, bool), metadata: Value) -> Self {
        Self { thread, is_new, at: None, metadata, temporary: false, deliveries: Vec::new() }
    }
}

/// Begins a run: an answer to the thread's question, or a new turn; a team's thread stays with the team, unless the
/// turn names another one.
pub(crate) async fn begin(service: &Service, begin: Begin, turn: Request) -> Result<Run, Refusal> {
    let made = begin.is_new.then_some(begin.thread);
    let begun = begin_on(service, begin, turn).await;
    service.unless_refused(made, begun).await
}

async fn begin_on(service: &Service, begin: Begin, mut turn: Request) -> Result<Run, Refusal> {
    let view = service.thread(begin.thread).await?;
    let named = turn.team.as_deref().unwrap_or(&view.info.graph);
    let own = service.runtime().own_graph(named).map(|graph| graph.about());
    let (graph, asked) = match own {
        Some(about) => {
            let graph = about.name.clone();
            (graph.clone(), Asked::Input { graph, input: input_of(about, &turn)? })
        }
        None => {
            turn.team = match &turn.team {
                Some(name) => Some(team::named(service, name).await?),
                None => team::of_thread(service, &view, begin.at).await?,
            };
            service.runtime().check_request(service.tenant(), turn.clone()).await?;
            let graph = turn.team.clone().unwrap_or_else(|| GRAPH.to_owned());
            (graph, Asked::Turn(turn.clone()))
        }
    };
    let is_answer = |one: &InterruptView| own.is_some() || one.kind != kind::CLARIFICATION;
    let waits = begin.at.is_none() && view.status == ClientStatus::Interrupted;
    let asked = if waits && view.open.iter().any(is_answer) {
        Asked::Resume(answer(&turn.question))
    } else {
        asked
    };
    let at = begin.at.filter(|at| *at != view.info.head);
    accept(service, &view, &graph, Begin { at, ..begin }, asked).await
}

fn input_of(about: &AboutGraph, turn: &Request) -> Result<Value, Refusal> {
    let Some(field) = &about.messages else {
        let why = format!("the graph {} has no messages; use its tool or assistant", about.name);
        return Err(Refusal::invalid(why));
    };
    let id = turn.message_id.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
    let content = turn.question.clone();
    let mut messages = turn.messages.clone();
    messages.push(Message { id, role: "user".into(), content, ..Message::default() });
    Ok(json!({ (field.as_str()): messages }))
}

/// Keeps a run of a graph or team.
pub(crate) async fn accept(
    service: &Service,
    view: &ThreadView,
    graph: &str,
    begin: Begin,
    asked: Asked,
) -> Result<Run, Refusal> {
    let Begin { thread, at, mut metadata, temporary, deliveries, .. } = begin;
    let shown = match &asked {
        Asked::Turn(turn) => {
            json!({ "input": { "messages": [{ "role": "user", "content": turn.question }] } })
        }
        Asked::Input { input, .. } => json!({ "input": input }),
        Asked::Resume(answer) => json!({ "input": null, "command": { "resume": answer } }),
        _ => json!({ "input": null }),
    };
    metadata["graph_id"] = json!(graph);
    let assistant = team::noted(view, graph).unwrap_or_else(|| assistant_of(graph));
    let accept = Accept {
        thread,
        assistant,
        order: Order { at, ..Order::new(asked) },
        shown,
        metadata,
        multitask: Multitask::Enqueue,
        temporary,
        due_at: None,
        deliveries,
    };
    Ok(service.accept_of(graph, accept).await?)
}

/// Reads a typed answer: JSON if it is an object, otherwise the text.
fn answer(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::String(text.trim().to_owned()),
    }
}

impl Conversation {
    pub(crate) fn follow(service: &Service, run: Run) -> Self {
        Self {
            service: service.clone(),
            listener: service.listen_from_beginning(run),
            state: None,
            questions: Vec::new(),
            sent: SentText::default(),
            ended_at: None,
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    pub(crate) fn asks(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Waits for the next piece; `None` after the last one, or if this process ends.
    pub(crate) async fn next(&mut self) -> Option<AnswerPart> {
        loop {
            if let Some(words) = self.ready.pop_front() {
                return Some(words);
            }
            if self.is_over {
                return None;
            }
            let stop = self.service.stop().clone();
            let next = tokio::select! {
                next = self.listener.next() => next,
                () = stop.cancelled() => { self.end(Ending::Continues); continue }
            };
            match next {
                Ok(Next::Change(heard)) => self.hear(heard.change),
                Ok(Next::Ended(run)) => self.ended(&run).await,
                Ok(Next::Gone) => self.end(Ending::Failed("the run was deleted".into())),
                Err(error) => self.lose(&error),
            }
        }
    }

    pub(crate) async fn outcome(mut self) -> Outcome {
        loop {
            match self.next().await {
                Some(AnswerPart::End(outcome)) => return outcome,
                Some(AnswerPart::Started(_) | AnswerPart::Piece(_)) => {}
                None => {
                    let ending = Ending::Failed("the run gave no answer".into());
                    let usage = Usage::default();
                    let text = String::new();
                    return Outcome { text, ending, usage, is_cut: false, ended_at: None };
                }
            }
        }
    }

    fn hear(&mut self, change: ThreadChange) {
        let [_, _, answering] = node_names();
        match change {
            ThreadChange::TaskStarted { node, .. } => {
                self.ready.push_back(AnswerPart::Started(node));
            }
            // An answer in JSON may be repaired: it is sent whole.
            ThreadChange::Piece { node, message, piece, .. }
                if (node == answering || self.is_of_own()) && !self.is_structured() =>
            {
                self.ready.extend(self.sent.add(&message, piece).map(AnswerPart::Piece));
            }
            ThreadChange::Step { at, rest, .. } => {
                rest.into_iter().for_each(|piece| self.hear(piece));
                self.sent.end_step();
                self.state = Some(at.state);
            }
            ThreadChange::ContinuesFrom { state } => self.state = Some(state),
            ThreadChange::Interrupted { interrupts, state, .. } => {
                self.questions = interrupts.iter().map(InterruptView::from).collect();
                self.state = Some(state);
            }
            _ => {}
        }
    }

    /// Ends with the status of the run's row; it can be dropped at any time without losing events.
    async fn ended(&mut self, run: &Run) {
        self.ended_at = Some(run.updated_at);
        match (run.status, &self.state) {
            (RunStatus::Interrupted, _) => self.end(Ending::Cancelled),
            (RunStatus::Error | RunStatus::Timeout, _) => {
                let why = run.error.as_ref().and_then(|why| why["message"].as_str());
                self.end(Ending::Failed(why.unwrap_or("the run failed").to_owned()));
            }
            (_, Some(state)) => {
                let star = state.star();
                let usage = star.usage_of_turn();
                let end = reason(star);
                self.say_whole(state.answer(), usage, end);
            }
            // Its events were dropped, or it had none.
            (_, None) => match self.service.left_by(run).await {
                Ok(left) => {
                    let says_nothing = left.answer().is_none() && left.asked.is_empty();
                    let why = left.error.as_ref().filter(|_| says_nothing && !left.has_moved_on());
                    if let Some(why) = why.cloned() {
                        return self.end(Ending::Failed(why));
                    }
                    self.questions.clone_from(&left.asked);
                    // What another turn took is not this one's.
                    let star = left.state.star();
                    let own = (!left.has_moved_on()).then(|| star.usage_of_turn());
                    let usage = own.unwrap_or_default();
                    self.say_whole(left.answer(), usage, reason(star));
                }
                Err(error) => self.lose(&error),
            },
        }
    }

    /// Ends because the run can be followed no longer, which says nothing of the run.
    fn lose(&mut self, error: &Error) {
        tracing::warn!(%error, "a run could not be followed to its end; it continues");
        let why = "the result of the run could not be read; see the service's log";
        self.end(if error.is_passing() { Ending::Continues } else { Ending::Failed(why.into()) });
    }

    fn say_whole(&mut self, answer: Option<String>, usage: Usage, end: Option<FinishReason>) {
        let ending = if self.questions.is_empty() { Ending::Answered } else { Ending::Asks };
        let text = match ending {
            Ending::Asks => questions::in_words(&self.questions),
            _ => answer.filter(|text| !text.is_empty()).unwrap_or_else(|| self.sent.text.clone()),
        };
        // An answer in place of the words that were sent leaves these cut.
        let is_cut = end == Some(FinishReason::Truncated)
            || end.is_some() && self.sent.is_replaced_by(&text);
        // The unsent rest: a question, or the end of an answer.
        self.ready.extend(self.sent.rest(&text).map(AnswerPart::Piece));
        self.close(Outcome { text, ending, usage, is_cut, ended_at: self.ended_at });
    }

    fn end(&mut self, ending: Ending) {
        let usage = self.state.as_ref().map(|state| state.star().usage_of_turn());
        let usage = usage.unwrap_or_default();
        let text = self.sent.text.clone();
        self.close(Outcome { text, ending, usage, is_cut: false, ended_at: self.ended_at });
    }

    /// Returns whether the graph is the program's own: then all pieces are sent to the client.
    fn is_of_own(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.of::<GraphState>().is_none())
    }

    fn is_structured(&self) -> bool {
        let state = self.state.as_ref().map(ThreadState::star);
        state.is_some_and(|star| star.preferences.answer_schema.is_some())
    }

    fn close(&mut self, outcome: Outcome) {
        self.is_over = true;
        self.ready.push_back(AnswerPart::End(outcome));
    }
}

fn reason(state: &GraphState) -> Option<FinishReason> {
    state.finish_reason.as_ref().map(|end| end.reason)
}
