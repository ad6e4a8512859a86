//! Keeps how a turn was planned, for those who are shown the answer (S2.03, S2.09).

use super::decision::{Accepted, SupervisorDecision};
use super::limits::StarLimits;
use super::menu::Menu;
use super::state::{GraphState, Planner};

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
            [] => candidates(menu, fitting),
            known => candidates(menu, known),
        },
        guardrails: guardrails(state, limits),
        by_words: before.by_words,
    }
}

/// Names the agents that could be chosen, those first that fit.
pub(super) fn candidates(menu: &Menu, fitting: &[String]) -> Vec<String> {
    let others = menu.shown.iter().map(|(name, _)| name).filter(|name| !fitting.contains(name));
    fitting.iter().chain(others).cloned().collect()
}

/// Names the bounds of a turn.
pub(super) fn guardrails(state: &GraphState, limits: &StarLimits) -> Vec<String> {
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
