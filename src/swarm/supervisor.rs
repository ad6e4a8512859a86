//! The supervisor: reads the state, plans, routes; continues a plan's stages; trips the breaker (S1.04, S1.05).

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::json;

use super::breaker::Exhausted;
use super::decision::{Accepted, SupervisorDecision, accept};
use super::menu::{Menu, Wish};
use super::model::{RecordedModel, stop_or_failure};
use super::offer::Offer;
use super::search::{self, Search};
use super::star::StarParts;
use super::state::{GraphState, GraphUpdate, Spent, TaskRecord};
use super::{Assignment, breaker, clarification, handout, node, seen, taint, window};
use crate::graph::{Context, Node, NodeError, NodeOutput, Target};
use crate::llm::{self, ChatRequest, Role};
use crate::metrics;

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
    /// Agents that the menu does not show.
    hidden: usize,
    /// Searches for them that may still be made.
    searches_left: usize,
    searches: Vec<&'a Search>,
    results: Vec<window::NumberedResult>,
    artifacts: Vec<window::Preview>,
    errors: &'a [String],
}

#[async_trait]
impl Node<GraphState> for Supervisor {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>, NodeError> {
        let state = ctx.state();
        if let Some(question) = state.routing.question.clone() {
            return clarification::put(&ctx, question).await;
        }
        let now = ctx.now().await?.timestamp_micros();
        if let Some(exhausted) = breaker::exhausted(state, &self.parts.limits, ctx.place(), now) {
            let mut errors = state.errors.clone();
            errors.extend(handout::not_started(state, &exhausted.reason));
            return Ok(finish(&ctx, GraphUpdate::new().errors(errors), Some(exhausted)));
        }
        let failed = handout::failed_of_stage(state);
        if failed.is_empty() && !state.stages.is_empty() {
            return Ok(handout::next_stage(&ctx));
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
        let trouble = |server: &str| self.parts.tools.trouble(server);
        let menu = self.parts.roster.menu(&Wish::of(state), self.parts.limits.menu, trouble);
        let menu: Menu = ctx.observe(seen::MENU, &menu).await?;
        let skipped = handout::not_started(state, &format!("{} failed", failed.join(", ")));
        let errors: Vec<String> = state.errors.iter().cloned().chain(skipped.clone()).collect();
        let request = self.request(ctx, &menu, &errors)?;
        let model = RecordedModel::new(ctx, &self.parts);
        let answer = llm::ask::<SupervisorDecision>(&model, request, "supervisor_decision").await;
        let spent = model.spent();
        let decision = match answer {
            Ok(answer) => answer.value,
            Err(error) => return self.undecided(ctx, spent, skipped, stop_or_failure(error)?),
        };
        ctx.emit(json!({
            "type": "decision",
            "thought": decision.thought_process,
            "plan": decision.plan,
            "agents": decision.selected_agents,
            "clarification": decision.clarification,
            "usage": spent.usage,
        }));
        let prefix = format!("{}.{}", state.turn, state.routing.round + 1);
        let update = GraphUpdate::new().spent(spent).stages(Vec::new()).errors(Vec::new());
        match accept(&decision, &Offer::of(&menu, state), &state.input_request, &prefix) {
            Ok(Accepted::Finish) => Ok(finish(ctx, update.plan(decision.plan), None)),
            Ok(Accepted::Clarify(question)) => {
                Ok(clarification::prepare(state, update.plan(decision.plan), question))
            }
            Ok(Accepted::Work { stages, queries }) => {
                let searches = search::perform(ctx, &self.parts.roster, &menu, queries).await?;
                if stages.is_empty() {
                    // What the supervisor was told is still to be acted upon.
                    let update = update.errors(errors).plan(decision.plan);
                    return Ok(self.look_further(ctx, update, searches));
                }
                Ok(self.dispatch(ctx, update, decision.plan, stages, searches))
            }
            Err(problems) => Ok(self.again(ctx, spent, skipped, problems)),
        }
    }

    fn request(
        &self,
        ctx: &Context<GraphState>,
        menu: &Menu,
        errors: &[String],
    ) -> Result<ChatRequest, NodeError> {
        let state = ctx.state();
        let prompt = Prompt {
            request: &state.input_request,
            context: window::context(state),
            history: window::history(state),
            plan: &state.plan,
            hidden: menu.hidden.len(),
            searches_left: Search::left(state),
            searches: state.routing.searches.iter().collect(),
            agents: menu
                .shown
                .iter()
                .map(|(name, line)| MenuLine { name: name.clone(), line: line.clone() })
                .collect(),
            results: window::results(state, window::OUTPUT_CHARS),
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
        ctx: &Context<GraphState>,
        spent: Spent,
        skipped: Vec<String>,
        error: llm::Error,
    ) -> Result<NodeOutput<GraphState>, NodeError> {
        match error {
            llm::Error::Invalid { .. } => {
                Ok(self.again(ctx, spent, skipped, vec![error.to_string()]))
            }
            other => Err(NodeError::failed("model", other.to_string())),
        }
    }

    /// Asks anew with what was wrong, unless the breaker has had enough.
    fn again(
        &self,
        ctx: &Context<GraphState>,
        spent: Spent,
        skipped: Vec<String>,
        problems: Vec<String>,
    ) -> NodeOutput<GraphState> {
        let routing = breaker::count_invalid(&ctx.state().routing);
        let tripped = routing.retry_count >= self.parts.limits.breaker_retries;
        let reason = format!("no usable decision could be made: {}", problems.join("; "));
        ctx.emit(json!({ "type": "decision_refused", "problems": problems }));
        let errors: Vec<String> = skipped.into_iter().chain(problems).collect();
        let update =
            GraphUpdate::new().spent(spent).stages(Vec::new()).routing(routing).errors(errors);
        if tripped {
            return finish(ctx, update, Some(Exhausted { bound: "no_decision", reason }));
        }
        let update = update.next_step(vec![node::SUPERVISOR.to_owned()]);
        NodeOutput::goto(update, [Target::node(node::SUPERVISOR)])
    }

    /// Asks anew with what searches for agents found, unless the breaker has had enough.
    fn look_further(
        &self,
        ctx: &Context<GraphState>,
        update: GraphUpdate,
        searches: Vec<Search>,
    ) -> NodeOutput<GraphState> {
        let routing = breaker::count_searches(&ctx.state().routing, searches);
        let tripped = routing.retry_count >= self.parts.limits.breaker_retries;
        let update = update.routing(routing);
        if tripped {
            let reason = "searches for agents found no further one, several times in a row";
            let exhausted = Exhausted { bound: "repeated_routing", reason: reason.into() };
            return finish(ctx, update, Some(exhausted));
        }
        let update = update.next_step(vec![node::SUPERVISOR.to_owned()]);
        NodeOutput::goto(update, [Target::node(node::SUPERVISOR)])
    }

    fn dispatch(
        &self,
        ctx: &Context<GraphState>,
        update: GraphUpdate,
        plan: Vec<String>,
        mut stages: Vec<Vec<Assignment>>,
        searches: Vec<Search>,
    ) -> NodeOutput<GraphState> {
        let state = ctx.state();
        let tainted_by = taint::of_talk(state);
        for task in stages.iter_mut().flatten() {
            task.tainted_by.extend(tainted_by.iter().cloned());
        }
        let mut agents: Vec<String> =
            stages.iter().flatten().map(|task| task.agent.clone()).collect();
        agents.sort();
        agents.dedup();
        let mut routing = breaker::count(&state.routing, agents, breaker::progress(state, &plan));
        // Beside work no search stands still, whatever it finds.
        let beside_work = |search| Search { is_new: true, ..search };
        routing.searches.extend(searches.into_iter().map(beside_work));
        let update = update.plan(plan);
        if routing.retry_count >= self.parts.limits.breaker_retries {
            let reason = format!(
                "the same agents were chosen {} times in a row without progress: {}",
                routing.retry_count + 1,
                routing.last.join(", ")
            );
            let exhausted = Exhausted { bound: "repeated_routing", reason };
            return finish(ctx, update.routing(routing), Some(exhausted));
        }
        let records = stages.iter().flatten().map(|task| TaskRecord {
            id: task.id.clone(),
            agent: task.agent.clone(),
            task: task.task.clone(),
            depends_on: task.depends_on.clone(),
            turn: state.turn,
        });
        handout::hand_out(ctx, update.tasks(records.collect()), routing, stages)
    }
}

/// Sends the run to QA; `exhausted` says why, when it was not because the work is done.
fn finish(
    ctx: &Context<GraphState>,
    update: GraphUpdate,
    exhausted: Option<Exhausted>,
) -> NodeOutput<GraphState> {
    if let Some(Exhausted { bound, reason }) = &exhausted {
        ctx.emit(json!({ "type": "ended_early", "reason": reason }));
        if !ctx.port().is_replay() {
            metrics::breaker_tripped(bound);
        }
    }
    let reason = exhausted.map(|exhausted| exhausted.reason);
    let update =
        update.stages(Vec::new()).finish_reason(reason).next_step(vec![node::QA.to_owned()]);
    NodeOutput::goto(update, [Target::node(node::QA)])
}
