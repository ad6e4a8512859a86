//! The supervisor: reads the state, plans, routes; continues a plan's stages; trips the breaker (S1.04, S1.05).

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use crate::assignment::DIRECT;
use crate::breaker::{self, Exhausted};
use crate::decision::{Accepted, accept};
use crate::dispatch::Choices;
use crate::menu::{self, MenuQuery};
use crate::model::{RecordedModel, stop_or_failure};
use crate::shape::Shape;
use crate::{
    AgentEvent, Assignment, EarlyEnd, FinishReason, GraphState, GraphUpdate, Menu, Planner, Result,
    Roster, Search, Spent, StarParts, Statement, SupervisorDecision, TaskRecord, candidates,
    dispatch, node, question, remaining, seen, shape, taint, window,
};
use perihelion_engine::graph::{Context, Node, NodeError, NodeOutput};
use perihelion_llm::{self as llm, ChatRequest, Role};
use perihelion_settings::metrics;

pub(super) struct Supervisor {
    pub parts: Arc<StarParts>,
    pub roster: Arc<Roster>,
}

#[async_trait]
impl Node<GraphState> for Supervisor {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>> {
        let state = ctx.state();
        if let Some(question) = state.routing.question.clone() {
            return question::put(&ctx, question).await;
        }
        if dispatch::direct(state).is_some() {
            return Ok(finish(&ctx, GraphUpdate::new(), None));
        }
        let now = ctx.note_time().await?.timestamp_micros();
        if let Some(exhausted) = breaker::exhausted(state, &self.parts.limits, ctx.place(), now) {
            let mut errors = state.errors.clone();
            errors.extend(dispatch::not_started(state, &exhausted.reason));
            return Ok(finish(&ctx, GraphUpdate::new().errors(errors), Some(exhausted)));
        }
        let failed = dispatch::failed_of_stage(state);
        if failed.is_empty() && !state.stages.is_empty() {
            let routing = state.routing.clone();
            let stages = state.stages.clone();
            return Ok(dispatch::dispatch(&ctx, GraphUpdate::new(), routing, stages));
        }
        if let Some(exhausted) = breaker::out_of_turns(state) {
            let why = if failed.is_empty() {
                exhausted.reason.clone()
            } else {
                format!("{} failed", failed.join(", "))
            };
            let mut errors = state.errors.clone();
            errors.extend(dispatch::not_started(state, &why));
            return Ok(finish(&ctx, GraphUpdate::new().errors(errors), Some(exhausted)));
        }
        match &state.preferences.team {
            Some(_) if state.results_of_turn().next().is_some() => {
                Ok(finish(&ctx, GraphUpdate::new(), None))
            }
            Some(team) => {
                let plan = format!("{team} answers the request, as was asked for");
                Ok(self.send(&ctx, GraphUpdate::new(), (team, ".team"), plan))
            }
            None => self.decide(&ctx, &failed, now).await,
        }
    }
}

impl Supervisor {
    async fn decide(
        &self,
        ctx: &Context<GraphState>,
        failed: &[String],
        now: i64,
    ) -> Result<NodeOutput<GraphState>> {
        let state = ctx.state();
        let failure_of = |server: &str| self.parts.tools.failure(server);
        let menu = self.roster.menu(
            &MenuQuery::of(&ctx.place().tenant, state),
            self.parts.limits.menu,
            failure_of,
        );
        let menu: Menu = ctx.observe(seen::MENU, &menu).await?;
        let shape = self.parts.shapes.next(&menu, state);
        let shape = ctx.observe_unless(seen::SHAPE, &Shape::Full, &shape).await?;
        self.listen(ctx);
        if let (Shape::Direct, [(agent, _)]) = (shape, menu.shown.as_slice()) {
            return Ok(self.send_direct(ctx, &menu, agent));
        }
        let skipped = dispatch::not_started(state, &format!("{} failed", failed.join(", ")));
        let errors: Vec<String> = state.errors.iter().cloned().chain(skipped.clone()).collect();
        let candidates = candidates::candidates(ctx, &self.roster, &menu).await?;
        let menu = shape.arranged(menu, &candidates);
        let left = remaining::left(state, &self.parts.limits, ctx.place(), now);
        let left = remaining::shown(left, &self.parts.limits.for_turn(state));
        // Noted, so that a replay under other bounds asks the same.
        let budget = ctx.observe_unless(seen::BUDGET, &Vec::new(), &left).await?;
        let request = self.request(ctx, shape, &menu, (&candidates, &errors, &budget))?;
        let model =
            RecordedModel::new(ctx, &self.parts).in_turn(state, ctx.place()).remembering(state);
        let answer = shape::ask(&model, request, shape, (&menu, state)).await;
        if !ctx.port().is_replay() {
            self.parts.shapes.learn(&answer);
        }
        let spent = model.spent();
        let decision = match answer {
            Ok(answer) => answer.value,
            Err(error) => {
                let error = stop_or_failure(error)?;
                let limits = &self.parts.limits;
                let known = (&menu, &candidates[..]);
                if let Some(by_words) = candidates::stand(ctx, spent, limits, known, &error) {
                    let candidates::ByWords { update, plan, stage } = by_words;
                    return Ok(self.dispatch(ctx, update, plan, vec![stage], Vec::new()));
                }
                return self.undecided(ctx, spent, skipped, error).await;
            }
        };
        publish(ctx, &decision, spent.usage);
        let prefix = format!("{}.{}", state.turn, state.routing.round + 1);
        let accepted = accept(&decision, &Choices::of(&menu, state), &state.input_request, &prefix);
        let planner =
            candidates::after(state, &decision, &menu, &self.parts.limits, &accepted, &candidates);
        let update = GraphUpdate::new().spent(spent).stages(Vec::new()).errors(Vec::new());
        let update = update.planner(Some(planner));
        match accepted {
            Ok(Accepted::Finish) => {
                let alone = menu.is_empty().then(Exhausted::no_agents);
                Ok(finish(ctx, update.plan(decision.plan), alone))
            }
            Ok(Accepted::Clarify(question)) => {
                if let Some(problem) = question::too_many(state) {
                    let why = FinishReason::NoProgress;
                    return Ok(self.again(ctx, spent, skipped, vec![problem], why));
                }
                Ok(question::prepare(state, update.plan(decision.plan), question))
            }
            Ok(Accepted::Work { stages, queries }) => {
                let searches = candidates::perform(ctx, &self.roster, &menu, queries).await?;
                if stages.is_empty() {
                    // The notes for the supervisor still apply.
                    let update = update.errors(errors).plan(decision.plan);
                    return Ok(self.look_further(ctx, update, searches));
                }
                Ok(self.dispatch(ctx, update, decision.plan, stages, searches))
            }
            Err(problems) => {
                let reason =
                    if menu.is_empty() { FinishReason::NoAgents } else { FinishReason::NoProgress };
                Ok(self.again(ctx, spent, skipped, problems, reason))
            }
        }
    }

    /// Sends the request to one agent; no model is asked.
    fn send(
        &self,
        ctx: &Context<GraphState>,
        update: GraphUpdate,
        (agent, id): (&str, &str),
        plan: String,
    ) -> NodeOutput<GraphState> {
        let state = ctx.state();
        let task = Assignment {
            id: format!("{}.{}{id}", state.turn, state.routing.round + 1),
            agent: agent.to_owned(),
            task: state.input_request.clone(),
            ..Assignment::default()
        };
        self.dispatch(ctx, update, vec![plan], vec![vec![task]], Vec::new())
    }

    fn send_direct(
        &self,
        ctx: &Context<GraphState>,
        menu: &Menu,
        agent: &str,
    ) -> NodeOutput<GraphState> {
        let plan = format!("{agent} answers the request");
        let decision = SupervisorDecision {
            thought_process: "There is one agent, so no model has to choose.".to_owned(),
            plan: vec![plan.clone()],
            selected_agents: vec![agent.to_owned()],
            tasks: Vec::new(),
            clarification: None,
            confidence: None,
        };
        publish(ctx, &decision, llm::Usage::default());
        let state = ctx.state();
        let accepted = Ok(Accepted::Work { stages: Vec::new(), queries: Vec::new() });
        let planner = candidates::after(state, &decision, menu, &self.parts.limits, &accepted, &[]);
        let planner = Planner { order: decision.selected_agents, ..planner };
        let update = GraphUpdate::new().errors(Vec::new()).planner(Some(planner));
        self.send(ctx, update, (agent, DIRECT), plan)
    }

    /// Stores memories from the user's words, in parallel with the first decision of a turn.
    fn listen(&self, ctx: &Context<GraphState>) {
        let state = ctx.state();
        let Some((experience, user)) = self.parts.experience.as_ref().zip(state.user.clone())
        else {
            return;
        };
        // A team's request is the supervisor's above, not the user's.
        let is_team = self.parts.top.is_some();
        if is_team || state.routing.round > 0 || ctx.port().is_replay() {
            return;
        }
        let thread = ctx.place().thread.to_string();
        let tenant = ctx.place().tenant.to_string();
        let text = state.input_request.clone();
        experience.heard(Statement { tenant, user, thread, turn: state.turn, text });
    }

    fn request(
        &self,
        ctx: &Context<GraphState>,
        shape: Shape,
        menu: &Menu,
        (candidates, errors, budget): (&[String], &[String], &[String]),
    ) -> Result<ChatRequest> {
        let state = ctx.state();
        let line = |(name, line): &(String, String)| json!({ "name": name, "line": line });
        let prompt = json!({
            "request": state.input_request,
            "wishes": state.preferences.system_prompt,
            "context": window::context(state),
            "history": window::history(state),
            "plan": state.plan,
            "agents": menu.shown.iter().map(line).collect::<Vec<_>>(),
            // Those that fit the request by words, best first.
            "candidates": if menu.shown.len() > 1 { candidates } else { &[] },
            "hidden": menu.hidden.len(),
            "searches_left": menu::left(state),
            "searches": state.routing.searches,
            "results": window::results(state, window::OUTPUT_CHARS),
            "artifacts": window::artifacts(state),
            "budget": budget,
            "errors": errors,
        });
        let template = if shape == Shape::Choice { "supervisor_choice" } else { "supervisor" };
        let messages = self.parts.prompts.messages(template, prompt);
        let messages = messages.map_err(window::prompt_failed)?;
        Ok(ChatRequest::new(Role::Supervisor, self.parts.thread(ctx.place()), messages))
    }

    /// A failed decision: the model gets invalid ones back, a failing endpoint stops the run, and a decision that takes
    /// longer than the turn ends it.
    ///
    /// If agents from keyword search have found something, the turn ends with that.
    async fn undecided(
        &self,
        ctx: &Context<GraphState>,
        spent: Spent,
        skipped: Vec<String>,
        error: llm::Error,
    ) -> Result<NodeOutput<GraphState>> {
        match error {
            llm::Error::Invalid { .. } => {
                let problems = vec![error.to_string()];
                Ok(self.again(ctx, spent, skipped, problems, FinishReason::ModelFailed))
            }
            other if candidates::stands(ctx.state()) => {
                let errors = ctx.state().errors.iter().cloned().chain(skipped).collect();
                let update = GraphUpdate::new().spent(spent).errors(errors);
                let bound = "no_decision";
                let why = FinishReason::ModelFailed;
                let reason = format!("the model that plans failed twice, last with: {other}");
                Ok(finish(ctx, update, Some(Exhausted { bound, why, reason })))
            }
            other => {
                let now = ctx.note_time().await?.timestamp_micros();
                let state = ctx.state();
                let limits = &self.parts.limits;
                let Some(late) = breaker::out_of_time(state, limits, ctx.place(), now) else {
                    return Err(NodeError::failed("model", other.to_string()));
                };
                let errors = state.errors.iter().cloned().chain(skipped).collect();
                let update = GraphUpdate::new().spent(spent).errors(errors);
                Ok(finish(ctx, update, Some(late)))
            }
        }
    }

    fn retries(&self, state: &GraphState) -> u32 {
        self.parts.limits.for_turn(state).breaker_retries
    }

    /// Asks again with the problem, unless the breaker stops it.
    fn again(
        &self,
        ctx: &Context<GraphState>,
        spent: Spent,
        skipped: Vec<String>,
        problems: Vec<String>,
        why: FinishReason,
    ) -> NodeOutput<GraphState> {
        let routing = breaker::count_invalid(&ctx.state().routing);
        let tripped = routing.retry_count >= self.retries(ctx.state());
        let reason = format!("no usable decision could be made: {}", problems.join("; "));
        AgentEvent::DecisionRefused { problems: problems.clone() }.publish(ctx);
        let errors: Vec<String> = skipped.into_iter().chain(problems).collect();
        let update =
            GraphUpdate::new().spent(spent).stages(Vec::new()).routing(routing).errors(errors);
        if tripped {
            return finish(ctx, update, Some(Exhausted { bound: "no_decision", why, reason }));
        }
        dispatch::to(update, node::SUPERVISOR)
    }

    /// Asks again with what searches for agents found, unless the breaker has had enough.
    fn look_further(
        &self,
        ctx: &Context<GraphState>,
        update: GraphUpdate,
        searches: Vec<Search>,
    ) -> NodeOutput<GraphState> {
        let routing = breaker::count_searches(&ctx.state().routing, searches);
        let tripped = routing.retry_count >= self.retries(ctx.state());
        let update = update.routing(routing);
        if tripped {
            let reason = "searches for agents found no further one, several times in a row";
            return finish(ctx, update, Some(Exhausted::repeated(reason)));
        }
        dispatch::to(update, node::SUPERVISOR)
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
        if routing.retry_count >= self.retries(state) {
            let exhausted = Exhausted::repeated(&breaker::repetition(&routing));
            return finish(ctx, update.routing(routing), Some(exhausted));
        }
        let records = stages.iter().flatten().map(|task| TaskRecord {
            id: task.id.clone(),
            agent: task.agent.clone(),
            task: task.task.clone(),
            depends_on: task.depends_on.clone(),
            turn: state.turn,
        });
        dispatch::dispatch(ctx, update.tasks(records.collect()), routing, stages)
    }
}

fn publish(ctx: &Context<GraphState>, decision: &SupervisorDecision, usage: llm::Usage) {
    AgentEvent::Decision {
        thought: decision.thought_process.clone(),
        plan: decision.plan.clone(),
        agents: decision.selected_agents.clone(),
        clarification: decision.clarification.clone(),
        usage,
    }
    .publish(ctx);
}

/// Sends the run to QA; `exhausted` has the reason, unless the work is done.
fn finish(
    ctx: &Context<GraphState>,
    update: GraphUpdate,
    exhausted: Option<Exhausted>,
) -> NodeOutput<GraphState> {
    if let Some(Exhausted { bound, why, reason }) = &exhausted {
        let finish_reason = Some(*why);
        AgentEvent::EndedEarly { reason: reason.clone(), finish_reason }.publish(ctx);
        if !ctx.port().is_replay() {
            metrics::breaker_tripped(bound);
        }
    }
    let reason = exhausted.map(|end| EarlyEnd { reason: end.why, text: end.reason });
    dispatch::to(update.stages(Vec::new()).finish_reason(reason), node::QA)
}
