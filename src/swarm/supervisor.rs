//! The supervisor: reads the state, plans, routes; continues a plan's stages; trips the breaker (S1.04, S1.05).

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};

use super::decision::{Accepted, SupervisorDecision, accept};
use super::model::{RecordedModel, stop_or_failure};
use super::star::StarParts;
use super::state::{GraphState, GraphUpdate, Message, ResultStatus, Routing, TaskRecord};
use super::{Assignment, breaker, node, window};
use crate::graph::{Context, Node, NodeError, NodeOutput, Target};
use crate::llm::{self, ChatRequest, Role, Usage};

/// Kind of the interrupt that asks the user.
const CLARIFICATION: &str = "clarification";

/// Plans and routes.
pub(super) struct Supervisor {
    pub parts: Arc<StarParts>,
}

#[derive(Serialize)]
struct MenuLine {
    name: String,
    line: String,
}

#[derive(Serialize)]
struct Prompt<'a> {
    request: &'a str,
    context: Vec<window::Entry>,
    history: Vec<window::Said>,
    plan: &'a [String],
    agents: Vec<MenuLine>,
    results: Vec<window::NumberedResult>,
    artifacts: Vec<window::Preview>,
    errors: &'a [String],
}

#[async_trait]
impl Node<GraphState> for Supervisor {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>, NodeError> {
        let state = ctx.state();
        let now = ctx.now().await?.timestamp_micros();
        if let Some(reason) = breaker::exhausted(state, &self.parts.limits, ctx.place().step, now) {
            return Ok(finish(GraphUpdate::new(), Some(reason)));
        }
        let failed = failed_of_stage(state);
        if failed.is_empty() && !state.stages.is_empty() {
            return Ok(next_stage(&ctx, state));
        }
        self.decide(&ctx, &failed).await
    }
}

impl Supervisor {
    async fn decide(
        &self,
        ctx: &Context<GraphState>,
        failed: &[String],
    ) -> Result<NodeOutput<GraphState>, NodeError> {
        let state = ctx.state();
        let menu = self.parts.roster.menu(&state.preferences.disable);
        let mut errors = state.errors.clone();
        if !state.stages.is_empty() {
            let skipped: Vec<&str> =
                state.stages.iter().flatten().map(|task| task.id.as_str()).collect();
            errors.push(format!(
                "{} failed, so these tasks of the plan were not started: {}",
                failed.join(", "),
                skipped.join(", ")
            ));
        }
        let request = self.request(ctx, &menu, &errors)?;
        let model = RecordedModel::new(ctx, &self.parts.model);
        let answer =
            match llm::ask::<SupervisorDecision>(&model, request, "supervisor_decision").await {
                Ok(answer) => answer,
                Err(error) => return self.undecided(state, stop_or_failure(error)?),
            };
        let decision = answer.value;
        ctx.emit(json!({
            "type": "decision",
            "thought": decision.thought_process,
            "plan": decision.plan,
            "agents": decision.selected_agents,
            "usage": answer.usage,
        }));
        let prefix = format!("{}.{}", state.turn, state.routing.round + 1);
        let names: Vec<String> = menu.into_iter().map(|(name, _)| name).collect();
        let update = GraphUpdate::new().usage(answer.usage).stages(Vec::new()).errors(Vec::new());
        match accept(&decision, &names, &state.input_request, &prefix) {
            Ok(Accepted::Finish) => Ok(finish(update.plan(decision.plan), None)),
            Ok(Accepted::Clarify(question)) => {
                clarify(ctx, update.plan(decision.plan), question).await
            }
            Ok(Accepted::Work(stages)) => Ok(self.dispatch(ctx, update, decision.plan, stages)),
            Err(problems) => Ok(self.again(state, answer.usage, problems)),
        }
    }

    fn request(
        &self,
        ctx: &Context<GraphState>,
        menu: &[(String, String)],
        errors: &[String],
    ) -> Result<ChatRequest, NodeError> {
        let state = ctx.state();
        let prompt = Prompt {
            request: &state.input_request,
            context: window::context(state),
            history: window::history(state),
            plan: &state.plan,
            agents: menu
                .iter()
                .map(|(name, line)| MenuLine { name: name.clone(), line: line.clone() })
                .collect(),
            results: window::results(state),
            artifacts: window::artifacts(state),
            errors,
        };
        let messages =
            self.parts.prompts.messages("supervisor", prompt).map_err(window::prompt_failed)?;
        Ok(ChatRequest {
            role: Role::Supervisor,
            thread: ctx.place().thread.to_string(),
            agent: None,
            messages,
            tools: Vec::new(),
            format: None,
        })
    }

    /// A decision that could not be had: nonsense is fed back, an endpoint that fails stops the run.
    fn undecided(
        &self,
        state: &GraphState,
        error: llm::Error,
    ) -> Result<NodeOutput<GraphState>, NodeError> {
        match error {
            llm::Error::Invalid { .. } => {
                Ok(self.again(state, Usage::default(), vec![error.to_string()]))
            }
            other => Err(NodeError::failed("model", other.to_string())),
        }
    }

    /// Asks anew with what was wrong, unless the breaker has had enough.
    fn again(
        &self,
        state: &GraphState,
        usage: Usage,
        problems: Vec<String>,
    ) -> NodeOutput<GraphState> {
        let routing = breaker::count_invalid(&state.routing);
        let tripped = routing.retry_count >= self.parts.limits.breaker_retries;
        let reason = format!("no usable decision could be made: {}", problems.join("; "));
        let update =
            GraphUpdate::new().usage(usage).stages(Vec::new()).routing(routing).errors(problems);
        if tripped {
            return finish(update, Some(reason));
        }
        let update = update.next_step(vec![node::SUPERVISOR.to_owned()]);
        NodeOutput::goto(update, [Target::node(node::SUPERVISOR)])
    }

    fn dispatch(
        &self,
        ctx: &Context<GraphState>,
        update: GraphUpdate,
        plan: Vec<String>,
        stages: Vec<Vec<Assignment>>,
    ) -> NodeOutput<GraphState> {
        let state = ctx.state();
        let mut agents: Vec<String> =
            stages.iter().flatten().map(|task| task.agent.clone()).collect();
        agents.sort();
        agents.dedup();
        let routing = breaker::count(&state.routing, agents, breaker::progress(state, &plan));
        let records = stages.iter().flatten().map(|task| TaskRecord {
            id: task.id.clone(),
            agent: task.agent.clone(),
            task: task.task.clone(),
            depends_on: task.depends_on.clone(),
            turn: state.turn,
        });
        let update = update.tasks(records.collect()).plan(plan);
        if routing.retry_count >= self.parts.limits.breaker_retries {
            let reason = format!(
                "the same agents were chosen {} times in a row without progress: {}",
                routing.retry_count + 1,
                routing.last.join(", ")
            );
            return finish(update.routing(routing), Some(reason));
        }
        hand_out(ctx, update, routing, stages)
    }
}

/// Sends the first of the stages out and keeps the rest.
fn hand_out(
    ctx: &Context<GraphState>,
    update: GraphUpdate,
    routing: Routing,
    mut stages: Vec<Vec<Assignment>>,
) -> NodeOutput<GraphState> {
    let rest = stages.split_off(stages.len().min(1));
    let stage: Vec<Assignment> =
        stages.into_iter().flatten().map(|task| task.with_outputs(ctx.state())).collect();
    let mut next: Vec<String> = Vec::new();
    for task in &stage {
        if !next.contains(&task.agent) {
            next.push(task.agent.clone());
        }
    }
    let routing =
        Routing { dispatched: stage.iter().map(|task| task.id.clone()).collect(), ..routing };
    ctx.emit(json!({ "type": "stage", "agents": next, "remaining": rest.len() }));
    let targets: Vec<Target> =
        stage.into_iter().map(|task| Target::send(task.agent.clone(), json!(task))).collect();
    NodeOutput::goto(update.routing(routing).stages(rest).next_step(next), targets)
}

fn next_stage(ctx: &Context<GraphState>, state: &GraphState) -> NodeOutput<GraphState> {
    hand_out(ctx, GraphUpdate::new(), state.routing.clone(), state.stages.clone())
}

/// Returns the tasks handed out last that did not succeed.
fn failed_of_stage(state: &GraphState) -> Vec<String> {
    let succeeded = |id: &String| {
        state
            .results
            .iter()
            .any(|result| result.id == *id && result.status == ResultStatus::Success)
    };
    state.routing.dispatched.iter().filter(|id| !succeeded(id)).cloned().collect()
}

fn finish(update: GraphUpdate, reason: Option<String>) -> NodeOutput<GraphState> {
    let update =
        update.stages(Vec::new()).finish_reason(reason).next_step(vec![node::QA.to_owned()]);
    NodeOutput::goto(update, [Target::node(node::QA)])
}

/// Suspends the run with a question for the user and goes on with the answer as a part of the history.
async fn clarify(
    ctx: &Context<GraphState>,
    update: GraphUpdate,
    question: String,
) -> Result<NodeOutput<GraphState>, NodeError> {
    let answer = ctx.interrupt(CLARIFICATION, json!({ "question": question })).await?;
    let text = match &answer {
        Value::String(text) => text.clone(),
        Value::Object(map) => map
            .get("text")
            .and_then(Value::as_str)
            .map_or_else(|| answer.to_string(), str::to_owned),
        other => other.to_string(),
    };
    let state = ctx.state();
    let id = |who: &str| format!("{}.{}.{who}", state.turn, state.routing.round + 1);
    let messages = vec![
        Message {
            id: id("question"),
            role: "assistant".into(),
            name: Some(node::SUPERVISOR.into()),
            content: question,
        },
        Message { id: id("clarification"), role: "user".into(), name: None, content: text },
    ];
    let routing = Routing { round: state.routing.round + 1, ..state.routing.clone() };
    let update =
        update.messages(messages).routing(routing).next_step(vec![node::SUPERVISOR.to_owned()]);
    Ok(NodeOutput::goto(update, [Target::node(node::SUPERVISOR)]))
}
