//! One tool call from its first leg to its end, through questions to people and tasks of the server.
//!
//! Each leg is an effect of its own: what a server asked, and the id of the task it made, are recorded
//! outcomes. So a person may take days to answer, and a task is found again after a crash, while nothing is
//! sent twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::GraphState;
use super::star::StarParts;
use super::toolbox::Told;
use crate::graph::{Context, EffectClass, EffectFailure, EffectRequest, NodeError, Outcome};
use crate::mcp::{
    self, Answers, Asked, CallContext, Gate, Leg, Progress, Question, Reply, TaskHandle,
    ToolDefinition, Wants,
};

/// Kind of the interrupt that puts a server's question to a person.
pub(super) const ELICITATION: &str = "elicitation";
/// Kind of the interrupt that asks what became of a call, as the journal names it.
const OUTCOME_UNKNOWN: &str = "outcome_unknown";
/// Name under which a lost task is recorded.
const LOST: &str = "dev.perihelion/lost";
/// Legs after which a call counts as one that never ends.
const MAX_LEGS: usize = 32;

/// One call of one tool.
pub(super) struct Exchange<'a> {
    pub ctx: &'a Context<GraphState>,
    pub parts: &'a StarParts,
    pub server: &'a str,
    pub agent: &'a str,
    pub tool: &'a ToolDefinition,
    pub full_name: &'a str,
    /// The rules under which the call was decided on.
    pub under: Gate,
}

/// What a leg came to.
enum Step {
    Ended(Told),
    Asked(Asked),
    Task(TaskHandle),
    /// The server's task is gone, and nobody knows how it ended.
    Lost(String),
}

impl Exchange<'_> {
    /// Performs the call; what fails is told as data.
    ///
    /// # Errors
    /// [`NodeError`] when a person must answer or decide first, or the run stops.
    pub(super) async fn perform(&self, arguments: &Map<String, Value>) -> Result<Told, NodeError> {
        let mut leg = Leg::first(arguments.clone());
        // Times that a person wanted a lost call sent again: part of the request, which would else be the same.
        let mut again = 0;
        let mut given = Answers::new();
        let mut told = BTreeSet::new();
        for _ in 0..MAX_LEGS {
            leg = match self.go(&leg, again).await? {
                Step::Ended(end) => return Ok(end),
                Step::Task(task) => Leg::Wait { task, told: told.clone() },
                Step::Asked(asked) => {
                    let answers = self.ask(&asked, arguments).await?;
                    if let Some(said) = asked.broken_off.as_ref().filter(|_| refuses(&answers)) {
                        // The call has ended already; to be told so once more would have it run twice.
                        return Ok(Told::problem(format!(
                            "a person declined to answer what the server asked, and the call ended with: {said}"
                        )));
                    }
                    match asked {
                        Asked { task: Some(task), .. } => {
                            told.extend(answers.keys().cloned());
                            Leg::Tell { task, answers }
                        }
                        Asked { state, broken_off, .. } => {
                            if broken_off.is_none() {
                                given.clear();
                            }
                            given.extend(answers);
                            Leg::Call {
                                arguments: arguments.clone(),
                                answers: given.clone(),
                                state,
                            }
                        }
                    }
                }
                Step::Lost(reason) if self.tool.repeatable => return Ok(Told::problem(reason)),
                Step::Lost(reason) => match self.decide(&reason, arguments).await? {
                    Some(end) => return Ok(end),
                    None => {
                        again += 1;
                        (given, told) = Default::default();
                        Leg::first(arguments.clone())
                    }
                },
            };
        }
        Ok(Told::problem(format!(
            "the server asked for more without end; the call was given up after {MAX_LEGS} rounds"
        )))
    }

    /// Goes one leg, or reads back what it came to.
    async fn go(&self, leg: &Leg, again: u32) -> Result<Step, NodeError> {
        let mut request = json!({ "server": self.server, "tool": self.tool.name });
        let repeatable = match leg {
            Leg::Call { arguments, answers, state } => {
                request["arguments"] = json!(arguments);
                if !answers.is_empty() {
                    request["answers"] = json!(answers);
                }
                if let Some(state) = state {
                    request["state"] = json!(state);
                }
                self.tool.repeatable
            }
            Leg::Wait { task, told } => {
                request["wait_for_task"] = json!(task.id);
                request["told"] = json!(told);
                true
            }
            // A server knows its questions by name and takes each answer once.
            Leg::Tell { task, answers } => {
                request["answer_task"] = json!(task.id);
                request["answers"] = json!(answers);
                true
            }
        };
        if again > 0 {
            request["again"] = json!(again);
        }
        let class = EffectClass::Action { repeatable };
        let effect = EffectRequest { class, name: self.full_name.to_owned(), request };
        let sent = AtomicBool::new(false);
        let perform = Box::new(|key: String| {
            sent.store(true, Ordering::Relaxed);
            if let Leg::Call { arguments, .. } = leg {
                self.emit("tool_call", arguments);
            }
            Box::pin(self.send(leg.clone(), key)) as futures::future::BoxFuture<'_, _>
        });
        let outcome = self.ctx.effect(effect, perform).await?;
        if !sent.load(Ordering::Relaxed)
            && let Leg::Call { arguments, .. } = leg
        {
            self.emit("tool_recorded", arguments);
        }
        Ok(match outcome {
            Outcome::Failed(problem) => Step::Ended(Told::problem(problem)),
            Outcome::Value(value) => step(value),
        })
    }

    fn emit(&self, what: &str, arguments: &Map<String, Value>) {
        self.ctx.emit(json!({
            "type": what, "agent": self.agent, "tool": self.full_name, "arguments": arguments,
        }));
    }

    fn tell(&self, progress: &Progress) {
        self.ctx.emit(json!({
            "type": "tool_progress", "agent": self.agent, "tool": self.full_name,
            "done": progress.done, "total": progress.total, "message": progress.message,
        }));
    }

    async fn send(&self, leg: Leg, key: String) -> Result<Value, EffectFailure> {
        let traceparent = match &self.parts.traces {
            Some(traces) => traces.traceparent(self.ctx.place(), &key).await,
            None => None,
        };
        let waits = matches!(leg, Leg::Wait { .. });
        let (progress, mut reports) = mpsc::channel(1);
        let context = CallContext {
            idempotency_key: key,
            traceparent,
            under: Some(self.under),
            progress: Some(progress),
        };
        let tools = Arc::clone(&self.parts.tools);
        let mut exchange = tools.exchange(self.server, &self.tool.name, leg, context);
        let reply = loop {
            tokio::select! {
                biased;
                reply = &mut exchange => break reply,
                Some(progress) = reports.recv() => self.tell(&progress),
                // Only waiting may be broken off: the task goes on, and is asked after when the run does.
                () = self.ctx.port().until_cancelled(), if waits => {
                    return Err(EffectFailure::Unknown("the run was stopped".into()));
                }
            }
        };
        match reply {
            Ok(reply) => serde_json::to_value(reply)
                .map_err(|error| EffectFailure::Unknown(error.to_string())),
            Err(error @ mcp::Error::Quarantined { .. }) => {
                self.parts.roster.remove(self.agent, error.to_string());
                Err(EffectFailure::NoEffect(error.to_string()))
            }
            Err(error) if waits => Ok(json!({ LOST: error.to_string() })),
            Err(error @ mcp::Error::Unknown { .. }) => {
                Err(EffectFailure::Unknown(error.to_string()))
            }
            Err(error) => Err(EffectFailure::NoEffect(error.to_string())),
        }
    }

    /// Puts a server's questions to a person, all at once, and returns the answers in the server's form.
    async fn ask(
        &self,
        asked: &Asked,
        arguments: &Map<String, Value>,
    ) -> Result<Answers, NodeError> {
        let mut answers = asked.settled.clone();
        let mut open = Vec::new();
        for question in &asked.questions {
            let payload = self.payload(question, asked.broken_off.is_some(), arguments);
            match self.ctx.interrupt(ELICITATION, payload).await {
                Ok(answer) => {
                    answers.insert(question.key.clone(), in_servers_form(&answer));
                }
                Err(NodeError::Interrupted(more)) => open.extend(more),
                Err(error) => return Err(error),
            }
        }
        if open.is_empty() { Ok(answers) } else { Err(NodeError::Interrupted(open)) }
    }

    fn payload(
        &self,
        question: &Question,
        makes_anew: bool,
        arguments: &Map<String, Value>,
    ) -> Value {
        let mut payload = json!({
            "agent": self.agent,
            "server": self.server,
            "tool": self.tool.name,
            "arguments": arguments,
            "message": question.message,
            "choices": ["accept", "decline"],
        });
        match &question.wants {
            Wants::Form { requested_schema } => {
                payload["mode"] = json!("form");
                payload["requested_schema"] = requested_schema.clone();
            }
            Wants::Url { url } => {
                payload["mode"] = json!("url");
                payload["url"] = json!(url);
            }
        }
        if makes_anew && !self.tool.repeatable {
            payload["warning"] = json!(
                "the server asked amid the call, which has ended; an answer makes the call anew, \
                 and what it did before it asked would be done again"
            );
        }
        payload
    }

    /// Asks a person what became of a lost call; `None` means: make it again.
    async fn decide(
        &self,
        reason: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Option<Told>, NodeError> {
        let payload = json!({
            "tool": self.full_name,
            "request": { "server": self.server, "tool": self.tool.name, "arguments": arguments },
            "reason": reason,
            "choices": ["done", "retry", "skip"],
        });
        let answer = self.ctx.interrupt(OUTCOME_UNKNOWN, payload).await?;
        Ok(match answer.get("outcome").and_then(Value::as_str) {
            Some("retry") => None,
            Some("done") => {
                let text = reported(answer.get("result").unwrap_or(&Value::Null));
                Some(Told::said(text, false))
            }
            _ => Some(Told::problem(
                "a person decided to skip this call; its outcome is unknown".to_owned(),
            )),
        })
    }
}

/// Reads the recorded outcome of a leg.
fn step(value: Value) -> Step {
    if let Some(reason) = value.get(LOST).and_then(Value::as_str) {
        return Step::Lost(reason.to_owned());
    }
    match serde_json::from_value(value.clone()) {
        Ok(Reply::Done(outcome)) => Step::Ended(Told::said(outcome.text, outcome.is_error)),
        Ok(Reply::Asked { asked }) => Step::Asked(asked),
        Ok(Reply::Task { task }) => Step::Task(task),
        Err(_) => Step::Ended(Told::said(reported(&value), false)),
    }
}

/// Leaves of a person's answer what a server is to see: reasons are for the agent.
fn in_servers_form(answer: &Value) -> Value {
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => mcp::accepted(answer.get("content").cloned()),
        _ => mcp::declined(),
    }
}

fn refuses(answers: &Answers) -> bool {
    answers.values().any(|answer| answer["action"] != "accept")
}

/// Words a result that a person supplied, as they liked, for a call whose outcome was unknown.
fn reported(value: &Value) -> String {
    match value {
        Value::Null => {
            "A person confirmed that the call was carried out; its result is not known.".into()
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
