//! Candidates by keyword search: agents that replace a model's decision, the record of how a turn was planned, and
//! searches (S2.03, S2.09).

use crate::{
    AgentEvent, Assignment, GraphState, GraphUpdate, Menu, Planner, Result, Roster, Search, Spent,
    StarLimits, SupervisorDecision, decision::Accepted, menu::MenuQuery, seen,
};
use perihelion_engine::graph::Context;
use perihelion_llm::Error;

/// How sure a choice is that was made by words alone.
const CONFIDENCE: f64 = 0.4;

/// Agents that are asked by words alone.
const MOST: usize = 3;

/// Finds the agents of the catalog that fit the request, preferred ones first; recorded, because agents change.
pub(super) async fn candidates(
    ctx: &Context<GraphState>,
    roster: &Roster,
    menu: &Menu,
) -> Result<Vec<String>> {
    let state = ctx.state();
    if state.routing.round > 0 {
        return Ok(Vec::new());
    }
    let wanted = MenuQuery::of(&ctx.place().tenant, state);
    let found = roster.fitting(&wanted, &state.preferences.prefer);
    let is_available = |name: &String| {
        menu.hidden.contains(name) || menu.shown.iter().any(|(shown, _)| shown == name)
    };
    let found: Vec<String> = found.into_iter().filter(is_available).collect();
    ctx.observe_unless(seen::CANDIDATES, &Vec::new(), &found).await
}

/// A stage that no model planned.
pub(super) struct ByWords {
    pub update: GraphUpdate,
    pub plan: Vec<String>,
    pub stage: Vec<Assignment>,
}

/// Runs the candidates if the model failed and there is no other choice; `None` without candidates.
pub(super) fn stand(
    ctx: &Context<GraphState>,
    spent: Spent,
    limits: &StarLimits,
    (menu, candidates): (&Menu, &[String]),
    failure: &Error,
) -> Option<ByWords> {
    let state = ctx.state();
    // Out of time is out of time, and without an endpoint no agent can think either.
    let is_hopeless =
        matches!(failure, Error::Late { .. } | Error::NotConfigured | Error::Prompt { .. });
    if candidates.is_empty() || is_hopeless {
        return None;
    }
    let order: Vec<String> = candidates.iter().take(MOST).cloned().collect();
    let why = format!(
        "no model decided ({failure}), so the agents are asked that fit the request by what they say they can do"
    );
    let task = |(number, agent): (usize, &String)| Assignment {
        id: format!("{}.{}.h{number}", state.turn, state.routing.round + 1),
        agent: agent.clone(),
        task: state.input_request.clone(),
        ..Assignment::default()
    };
    let stage: Vec<Assignment> = (1..).zip(&order).map(task).collect();
    let plan = vec![format!("ask {}", order.join(", "))];
    AgentEvent::Decision {
        thought: why.clone(),
        plan: plan.clone(),
        agents: order.clone(),
        clarification: None,
        usage: spent.usage,
    }
    .publish(ctx);
    let planner = Planner {
        turn: state.turn,
        rationale: why,
        order,
        confidence: Some(CONFIDENCE),
        candidates: fitting_first(menu, candidates),
        guardrails: guardrails(state, limits),
        by_words: true,
    };
    let update = GraphUpdate::new()
        .spent(spent)
        .stages(Vec::new())
        .errors(Vec::new())
        .planner(Some(planner));
    Some(ByWords { update, plan, stage })
}

/// Returns whether the agents of this turn were chosen by keyword search, and one of them found something.
pub(super) fn stands(state: &GraphState) -> bool {
    let by_words = |planner: &Planner| planner.turn == state.turn && planner.by_words;
    let is_good = |result: &super::AgentResult| result.status == super::ResultStatus::Success;
    state.planner.as_ref().is_some_and(by_words) && state.results_of_turn().any(is_good)
}

/// Returns how the turn is planned after a decision.
pub(super) fn after(
    state: &GraphState,
    decision: &SupervisorDecision,
    menu: &Menu,
    limits: &StarLimits,
    accepted: &Result<Accepted, Vec<String>>,
    fitting: &[String],
) -> Planner {
    let before = state.planner.clone().filter(|planner| planner.turn == state.turn);
    let before = before.unwrap_or_default();
    let mut order = before.order;
    if let Ok(Accepted::Work { stages, .. }) = accepted {
        order.extend(stages.iter().flatten().map(|task| task.agent.clone()));
    }
    Planner {
        turn: state.turn,
        rationale: if before.by_words {
            format!("{}; {}", before.rationale, decision.thought_process)
        } else {
            decision.thought_process.clone()
        },
        order,
        confidence: decision.confidence.or(before.confidence),
        candidates: match before.candidates.as_slice() {
            [] => fitting_first(menu, fitting),
            known => fitting_first(menu, known),
        },
        guardrails: guardrails(state, limits),
        by_words: before.by_words,
    }
}

/// Names the agents that could be chosen, those first that fit.
fn fitting_first(menu: &Menu, fitting: &[String]) -> Vec<String> {
    let others = menu.shown.iter().map(|(name, _)| name).filter(|name| !fitting.contains(name));
    fitting.iter().chain(others).cloned().collect()
}

fn guardrails(state: &GraphState, limits: &StarLimits) -> Vec<String> {
    let limits = limits.for_turn(state);
    let mut bounds = vec![
        format!("steps: {}", limits.max_steps),
        format!("tool calls per task: {}", limits.max_tool_calls),
        format!("repeated routings: {}", limits.breaker_retries),
    ];
    bounds.extend(limits.max_tokens.map(|most| format!("tokens: {most}")));
    bounds.extend(limits.max_nano_usd.map(|most| format!("USD: {}", most as f64 / 1e9)));
    bounds.extend(limits.turn_tool_calls.map(|most| format!("tool calls: {most}")));
    bounds.extend(limits.deadline_sec.map(|most| format!("seconds: {most}")));
    bounds.extend(state.preferences.max_turns.map(|most| format!("turns: {most}")));
    bounds.extend(state.preferences.disable.iter().map(|name| format!("not used: {name}")));
    bounds
}

/// Agents that one search finds at most.
const FOUND: usize = 5;

const QUERY_CHARS: usize = 200;

/// Runs the searches of a decision; their results are recorded like observations of a node.
pub(super) async fn perform(
    ctx: &Context<GraphState>,
    roster: &Roster,
    menu: &Menu,
    queries: Vec<String>,
) -> Result<Vec<Search>> {
    let state = ctx.state();
    if queries.is_empty() {
        return Ok(Vec::new());
    }
    let tenant = &ctx.place().tenant;
    let disabled = &state.preferences.disable;
    let find = |query: &String| roster.find_agents(tenant, query, disabled, FOUND);
    // Noted together: a replay reads back one thing of a name for each task.
    let found: Vec<Vec<String>> =
        ctx.observe(seen::FOUND, &queries.iter().map(find).collect::<Vec<_>>()).await?;
    let search = |(query, found): (String, Vec<String>)| {
        // It is stored in the state and part of every later prompt of the turn.
        let line = query.split_whitespace().collect::<Vec<_>>().join(" ");
        let query: String = line.chars().take(QUERY_CHARS).collect();
        AgentEvent::Search { query: query.clone(), found: found.clone() }.publish(ctx);
        let is_new = found.iter().any(|name| menu.hidden.contains(name));
        Search { query, found, is_new, round: state.routing.round + 1 }
    };
    Ok(queries.into_iter().zip(found).map(search).collect())
}
