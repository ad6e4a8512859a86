//! Candidates by words: agents that fit a request by what they say they can do, and stand when no model decides (S2.03).

use super::assignment::Assignment;
use super::event::AgentEvent;
use super::limits::StarLimits;
use super::menu::{Menu, MenuQuery};
use super::planned;
use super::roster::Roster;
use super::seen;
use super::state::{GraphState, GraphUpdate, Planner, Spent};
use perihelion_engine::graph::{Context, NodeError};
use perihelion_llm::Error;

/// How sure a choice is that was made by words alone.
const CONFIDENCE: f64 = 0.4;

/// Agents that are asked by words alone.
const MOST: usize = 3;

/// Finds the agents of the menu that fit the request, those that the user prefers first; noted, for agents come and go.
///
/// # Errors
/// [`NodeError`] when they cannot be noted.
pub(super) async fn candidates(
    ctx: &Context<GraphState>,
    roster: &Roster,
    menu: &Menu,
) -> Result<Vec<String>, NodeError> {
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

/// Has the candidates asked, where the model's failure leaves no other choice; `None` where there are none.
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
    let chosen: Vec<&String> = candidates.iter().take(MOST).collect();
    let why = format!(
        "no model decided ({failure}), so the agents are asked that fit the request by what they say they can do"
    );
    let task = |(number, agent): (usize, &&String)| Assignment {
        id: format!("{}.{}.h{}", state.turn, state.routing.round + 1, number + 1),
        agent: (*agent).clone(),
        task: state.input_request.clone(),
        ..Assignment::default()
    };
    let stage: Vec<Assignment> = chosen.iter().enumerate().map(task).collect();
    let order: Vec<String> = chosen.iter().map(|agent| (*agent).clone()).collect();
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
        candidates: planned::candidates(menu, candidates),
        guardrails: planned::guardrails(state, limits),
        by_words: true,
    };
    let update = GraphUpdate::new()
        .spent(spent)
        .stages(Vec::new())
        .errors(Vec::new())
        .planner(Some(planner));
    Some(ByWords { update, plan, stage })
}

/// Tells whether the present turn's agents were chosen by words, and one of them found something.
pub(super) fn stands(state: &GraphState) -> bool {
    let by_words = |planner: &Planner| planner.turn == state.turn && planner.by_words;
    let is_good = |result: &super::AgentResult| result.status == super::ResultStatus::Success;
    state.planner.as_ref().is_some_and(by_words) && state.results_of_turn().any(is_good)
}
