//! One tool call from its first request to its end, through questions to people and tasks of the server.
//!
//! Each round is a separate effect: a server's question and the ID of its task are recorded outcomes. A person can
//! therefore take days to answer, and a task is found again after a crash, without a repeated call.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::answer::{Action, ElicitationAnswer};
use crate::approval::{self, Decision};
use crate::question::{self, Elicitation, Question};
use crate::{AgentEvent, Job, Result, ToolReply, caller::Caller};
use perihelion_engine::graph::{EffectClass, EffectFailure, EffectRequest, Outcome};
use perihelion_engine::journal::{OutcomeUnknown, REPEATS, Verdict};
use perihelion_mcp::{
    self as mcp, Answers, Asked, CallContext, CallPolicy, CallRound, Progress, Question as Asking,
    Reply, ToolDefinition, ToolOutcome, Wants,
};

/// The number of rounds after which a call fails because it does not end.
const MAX_ROUNDS: usize = 32;

const LATE: &str = "the time limit of the run was reached before the call had ended";

impl Caller<'_> {
    /// Checks and sends a call that was approved if it needed an approval.
    pub(super) async fn perform(
        &self,
        tool: &ToolDefinition,
        call_id: &str,
        arguments: &Value,
        decision: Option<Decision>,
    ) -> Result<ToolReply> {
        let Value::Object(arguments) = arguments else {
            return Ok(ToolReply::problem(format!(
                "the arguments of {} are not a JSON object: {arguments}",
                tool.name
            )));
        };
        let edited = decision.as_ref().and_then(Decision::edited);
        // People are asked only about arguments that fit; what they put in their place is as new as what nobody saw.
        let unchecked = if decision.is_some() { edited } else { Some(arguments) };
        if let Some(Err(problem)) = unchecked.map(|one| tool.input_schema.check(&tool.name, one)) {
            return Ok(ToolReply::problem(problem.to_string()));
        }
        let arguments = edited.unwrap_or(arguments);
        let full_name = self.full_name(tool);
        let problem = match &decision {
            Some(Decision::Denied { reason }) => format!("a person denied this call: {reason}"),
            Some(Decision::TimedOut) => {
                "not called: nobody approved this call in time, which counts as a denial".to_owned()
            }
            Some(Decision::Skipped) => approval::not_waited(&full_name).message,
            // Whatever led here, a gated call without a person's word is not made.
            None if tool.needs_approval => "not called: nobody approved this call".to_owned(),
            decision => {
                let instruction = decision.as_ref().and_then(Decision::instruction).cloned();
                let policy = tool.call_policy();
                let under = if decision.is_some() { policy.allowed() } else { policy };
                let full_name = &full_name;
                let exchange = Exchange { caller: *self, tool, call_id, full_name, under };
                return Ok(ToolReply { instruction, ..exchange.perform(arguments).await? });
            }
        };
        Ok(ToolReply::problem(problem))
    }
}

pub(super) struct Exchange<'a> {
    pub caller: Caller<'a>,
    pub tool: &'a ToolDefinition,
    pub call_id: &'a str,
    pub full_name: &'a str,
    pub under: CallPolicy,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum RoundOutcome {
    Reply(Reply),
    /// The server has lost the task, and its outcome is unknown.
    Lost {
        #[serde(rename = "dev.perihelion/lost")]
        reason: String,
    },
    /// A person's result, in any form, for a call with an unknown outcome.
    Reported(Value),
}

impl Exchange<'_> {
    /// Performs the call; a failure is returned as data.
    pub(super) async fn perform(&self, arguments: &Map<String, Value>) -> Result<ToolReply> {
        let mut call_round = CallRound::first(arguments.clone());
        // Times that a person wanted a lost call sent again: part of the request, which would else be the same.
        let mut again = 0;
        let mut given = Answers::new();
        let mut answered = BTreeSet::new();
        for _ in 0..MAX_ROUNDS {
            call_round = match self.go(&call_round, again).await? {
                RoundOutcome::Reply(Reply::Done(outcome)) => {
                    return Ok(ToolReply::of_outcome(outcome));
                }
                RoundOutcome::Reported(result) => {
                    return Ok(ToolReply::of_text(reported(&result), false));
                }
                RoundOutcome::Reply(Reply::Task { task }) => {
                    CallRound::Wait { task, answered: answered.clone() }
                }
                RoundOutcome::Reply(Reply::Asked { asked }) => {
                    let answers = self.ask(&asked, arguments).await?;
                    if let Some(error_text) =
                        asked.broken_off.as_ref().filter(|_| refuses(&answers))
                    {
                        // The call has ended already; sending the refusal would make it run twice.
                        return Ok(ToolReply::problem(format!(
                            "a person declined to answer what the server asked, and the call ended with: {error_text}"
                        )));
                    }
                    match asked {
                        Asked { task: Some(task), .. } => {
                            answered.extend(answers.keys().cloned());
                            CallRound::Tell { task, answers }
                        }
                        Asked { state, broken_off, .. } => {
                            if broken_off.is_none() {
                                given.clear();
                            }
                            given.extend(answers);
                            CallRound::Call {
                                arguments: arguments.clone(),
                                answers: given.clone(),
                                state,
                            }
                        }
                    }
                }
                RoundOutcome::Lost { reason } if self.tool.repeatable => {
                    return Ok(ToolReply::problem(reason));
                }
                RoundOutcome::Lost { reason } => match self.decide(&reason, arguments).await? {
                    Some(end) => return Ok(end),
                    None => {
                        again += 1;
                        (given, answered) = Default::default();
                        CallRound::first(arguments.clone())
                    }
                },
            };
        }
        Ok(ToolReply::problem(format!(
            "the server asked for more without end; the call was given up after {MAX_ROUNDS} rounds"
        )))
    }

    /// Performs one round, or returns its recorded result.
    async fn go(&self, call_round: &CallRound, again: u32) -> Result<RoundOutcome> {
        let mut request = json!({ "server": self.caller.job.server.name, "tool": self.tool.name });
        let repeatable = match call_round {
            CallRound::Call { arguments, answers, state } => {
                request["arguments"] = json!(arguments);
                if !answers.is_empty() {
                    request["answers"] = json!(answers);
                }
                if let Some(state) = state {
                    request["state"] = json!(state);
                }
                self.tool.repeatable
            }
            CallRound::Wait { task, answered } => {
                request["wait_for_task"] = json!(task.id);
                request["told"] = json!(answered);
                true
            }
            // A server knows its questions by name and takes each answer once.
            CallRound::Tell { task, answers } => {
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
        let sent = AtomicU32::new(0);
        let perform = Box::new(|key: String| {
            let is_last = sent.fetch_add(1, Ordering::Relaxed) + 1 >= REPEATS;
            self.publish_call(call_round, true);
            Box::pin(self.send(call_round.clone(), key, is_last))
                as futures::future::BoxFuture<'_, _>
        });
        let outcome = self.caller.ctx.effect(effect, perform).await?;
        if sent.load(Ordering::Relaxed) == 0 {
            self.publish_call(call_round, false);
        }
        Ok(match outcome {
            Outcome::Failed(text) => RoundOutcome::Reply(Reply::Done(ToolOutcome::failed(text))),
            Outcome::Value(value) => {
                RoundOutcome::deserialize(&value).unwrap_or_else(|_| RoundOutcome::Reported(value))
            }
        })
    }

    fn publish_call(&self, call_round: &CallRound, is_live: bool) {
        let CallRound::Call { arguments, .. } = call_round else { return };
        let agent = self.caller.job.agent.clone();
        let tool = self.full_name.to_owned();
        let arguments = arguments.clone();
        let call_id = Some(self.call_id.to_owned());
        let event = if is_live {
            AgentEvent::ToolCall { agent, tool, arguments, call_id }
        } else {
            AgentEvent::ToolRecorded { agent, tool, arguments, call_id }
        };
        event.publish(self.caller.ctx);
    }

    fn publish_progress(&self, progress: Progress) {
        let Progress { done, total, message } = progress;
        let agent = self.caller.job.agent.clone();
        let tool = self.full_name.to_owned();
        AgentEvent::ToolProgress { agent, tool, done, total, message }.publish(self.caller.ctx);
    }

    async fn send(
        &self,
        call_round: CallRound,
        key: String,
        is_last: bool,
    ) -> Result<Value, EffectFailure> {
        let Job { star, agent, server, .. } = self.caller.job;
        let ctx = self.caller.ctx;
        let traceparent = match &star.traces {
            Some(traces) => traces.traceparent(ctx.place(), &key).await,
            None => None,
        };
        let waits = matches!(call_round, CallRound::Wait { .. });
        // A task is asked after as often as needed, but the call that made it is not made twice.
        let is_kept = !matches!(call_round, CallRound::Call { .. }) && !self.tool.repeatable;
        let (progress, mut reports) = mpsc::channel(1);
        let context = CallContext {
            idempotency_key: key,
            tenant: ctx.place().tenant.to_string(),
            traceparent,
            under: Some(self.under),
            progress: Some(progress),
            beside: self.caller.beside.cloned().unwrap_or_default(),
        };
        let mut exchange = star.tools.exchange(&server.name, &self.tool.name, call_round, context);
        let too_late = self.caller.until_late();
        tokio::pin!(too_late);
        let reply = loop {
            tokio::select! {
                biased;
                reply = &mut exchange => break reply.map_err(Some),
                Some(progress) = reports.recv() => self.publish_progress(progress),
                // Only waiting may be broken off: the task continues, and is asked after when the run does.
                () = ctx.port().until_cancelled(), if waits => {
                    return Err(EffectFailure::Unknown("the run was stopped".into()));
                }
                () = &mut too_late => break Err(None),
            }
        };
        let error = match reply {
            Ok(reply) => return recorded(RoundOutcome::Reply(reply)),
            Err(error) => error,
        };
        let is_late = error.is_none();
        let (reason, is_unknown) = match error {
            // A repeatable call cannot have done harm and is given up; about any other a person decides.
            None => (LATE.to_owned(), !self.tool.repeatable),
            Some(error @ mcp::Error::Quarantined { .. }) => {
                let reason = error.for_models();
                star.withdraw.withdraw(agent, reason.clone());
                (reason, false)
            }
            Some(error) => (error.to_string(), matches!(error, mcp::Error::Unknown { .. })),
        };
        if waits && !is_late || is_kept && (is_last || is_late || !is_unknown) {
            recorded(RoundOutcome::Lost { reason })
        } else if is_unknown {
            Err(EffectFailure::Unknown(reason))
        } else {
            Err(EffectFailure::NoEffect(reason))
        }
    }

    /// Puts a server's questions to a person, all at once, and returns the answers in the server's form.
    async fn ask(&self, asked: &Asked, arguments: &Map<String, Value>) -> Result<Answers> {
        let asks_again = asked.broken_off.is_some();
        let mut given = Vec::new();
        for one in &asked.questions {
            let answer = self.question(one, asks_again, arguments).put(self.caller.ctx).await;
            given.push(answer.map(|answer| (one.key.clone(), in_servers_form(&answer))));
        }
        let mut answers = asked.settled.clone();
        answers.extend(question::all(given)?);
        Ok(answers)
    }

    /// Makes a server's question one to a person; `calls_again` says that an answer makes the call once more.
    fn question(
        &self,
        asked: &Asking,
        calls_again: bool,
        arguments: &Map<String, Value>,
    ) -> Question {
        let mut elicitation = Elicitation {
            agent: self.caller.job.agent.clone(),
            server: self.caller.job.server.name.clone(),
            tool: self.tool.name.clone(),
            arguments: arguments.clone(),
            message: asked.message.clone(),
            choices: ["accept", "decline"].map(str::to_owned).into(),
            ..Elicitation::default()
        };
        match &asked.wants {
            Wants::Form { requested_schema } => {
                elicitation.mode = "form".to_owned();
                elicitation.requested_schema = Some(requested_schema.clone());
            }
            Wants::Url { url } => {
                elicitation.mode = "url".to_owned();
                elicitation.url = Some(url.clone());
            }
        }
        if calls_again && !self.tool.repeatable {
            elicitation.warning = Some(
                "the server asked during the call, which has ended; an answer makes the call once more, \
                 and what it did before it asked would be done again"
                    .to_owned(),
            );
        }
        Question::Elicitation(elicitation)
    }

    /// Asks a person what became of a lost call; `None` means: make it again.
    async fn decide(
        &self,
        reason: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Option<ToolReply>> {
        let request = json!({
            "server": self.caller.job.server.name, "tool": self.tool.name, "arguments": arguments,
        });
        let question = OutcomeUnknown::of(self.full_name, request, reason);
        Ok(match question.put(self.caller.ctx).await? {
            Verdict::Retry => None,
            Verdict::Done { result } => Some(ToolReply::of_text(reported(&result), false)),
            Verdict::Skip => Some(ToolReply::problem(
                "a person decided to skip this call; its outcome is unknown".to_owned(),
            )),
        })
    }
}

fn recorded(outcome: RoundOutcome) -> Result<Value, EffectFailure> {
    serde_json::to_value(outcome).map_err(|error| EffectFailure::Unknown(error.to_string()))
}

/// Removes from a person's answer the parts that are not for the server, such as reasons for the agent.
fn in_servers_form(answer: &Value) -> Value {
    let answer = ElicitationAnswer::of(answer);
    match answer.action {
        Action::Accept => mcp::accepted(answer.content),
        Action::Decline => mcp::declined(),
    }
}

fn refuses(answers: &Answers) -> bool {
    answers.values().any(|answer| ElicitationAnswer::of(answer).action == Action::Decline)
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
