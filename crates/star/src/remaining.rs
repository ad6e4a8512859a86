//! The remaining bounds of a turn: shown to the supervisor, and divided among the tasks of a stage (S1.05).

use crate::{Allowance, GraphState, StarLimits, breaker};
use perihelion_engine::graph::NodeLocation;

/// The fraction of used steps from which they are shown, if no other bound is set.
const FEW: u64 = 4;

pub(super) fn left(
    state: &GraphState,
    limits: &StarLimits,
    place: &NodeLocation,
    now_micros: i64,
) -> Allowance {
    let limits = limits.for_turn(state);
    let spent = state.spent_in_turn();
    let less = |most: Option<u64>, spent: u64| most.map(|most| most.saturating_sub(spent));
    Allowance {
        steps: less(Some(limits.max_steps), breaker::steps(state, place)),
        tokens: less(limits.max_tokens, spent.usage.total()),
        nano_usd: less(limits.max_nano_usd, spent.nano_usd),
        tool_calls: less(limits.turn_tool_calls, state.tool_calls_of_turn()),
        seconds: breaker::time_left(breaker::began(state, place), limits.work_time(), now_micros)
            .map(|left| left.as_secs()),
    }
}

/// Returns the bounds for a team's turn: an equal share of the remaining ones, within the bounds of teams.
///
/// The shares of a stage's tasks together are at most the remaining amount; they run at the same time, so each has the
/// whole time.
pub(super) fn for_team(
    state: &GraphState,
    limits: &StarLimits,
    place: &NodeLocation,
    now_micros: i64,
) -> Allowance {
    let left = left(state, limits, place, now_micros);
    let part = |left: Option<u64>| left.map(|left| share(left, state, place));
    let shared = Allowance {
        steps: part(left.steps),
        tokens: part(left.tokens),
        nano_usd: part(left.nano_usd),
        tool_calls: part(left.tool_calls),
        seconds: left.seconds,
    };
    shared.within(limits.of_teams)
}

/// Returns how many tool calls an agent can make for its task: its own bound for each attempt, or its share of the
/// turn's.
pub(super) fn tool_calls(
    state: &GraphState,
    limits: &StarLimits,
    place: &NodeLocation,
    attempts: u32,
) -> usize {
    let limits = limits.for_turn(state);
    let most = u64::from(limits.max_tool_calls) * u64::from(attempts);
    let left = limits.turn_tool_calls;
    let left = left.map(|all| all.saturating_sub(state.tool_calls_of_turn()));
    let most = left.map_or(most, |left| most.min(share(left, state, place)));
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// Divides by the tasks that were handed out together; the first ones get what cannot be divided.
fn share(left: u64, state: &GraphState, place: &NodeLocation) -> u64 {
    let tasks = (state.routing.dispatched.len() as u64).max(1);
    left / tasks + u64::from(u64::from(place.task) < left % tasks)
}

/// Lists the remaining bounds, one per line; empty if only steps are bounded and many are left.
pub(super) fn shown(left: Allowance, limits: &StarLimits) -> Vec<String> {
    let usd = |nano: u64| format!("{:.4}", nano as f64 / 1e9);
    let line = |name: &str, left: Option<u64>, most: Option<u64>, form: &dyn Fn(u64) -> String| {
        Some(format!("{name}: {} of {} left", form(left?), form(most?)))
    };
    let plain = |number: u64| number.to_string();
    let others = [
        line("tokens", left.tokens, limits.max_tokens, &plain),
        line("US dollars", left.nano_usd, limits.max_nano_usd, &usd),
        line("tool calls", left.tool_calls, limits.turn_tool_calls, &plain),
        line("seconds", left.seconds, limits.deadline_sec, &plain),
    ];
    let others: Vec<String> = others.into_iter().flatten().collect();
    let are_few = left.steps.is_some_and(|left| left < limits.max_steps / FEW);
    if others.is_empty() && !are_few {
        return Vec::new();
    }
    let steps = line("steps", left.steps, Some(limits.max_steps), &plain);
    steps.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breaker::tests::{limits, place_at};

    /// S1.05
    #[test]
    fn tasks_of_one_stage_share_the_budget_and_a_team_also_has_the_limit_of_teams() {
        let mut state = GraphState::default();
        state.routing.dispatched = ["a", "b", "c"].map(str::to_owned).into();
        let limits = StarLimits { turn_tool_calls: Some(7), max_tokens: Some(100), ..limits() };
        let place = |task| NodeLocation { task, ..place_at(1_000) };
        let of = |task| for_team(&state, &limits, &place(task), 1_000_000_000);
        let shares: Vec<_> = (0..3).map(|task| of(task).tool_calls.unwrap()).collect();
        assert_eq!(shares, [3, 2, 2], "seven calls for three");
        assert_eq!((of(0).tokens, of(1).tokens), (Some(34), Some(33)));
        assert_eq!(of(0).seconds, Some(48), "all of the time for work for each");
        assert_eq!(tool_calls(&state, &limits, &place(0), 1), 1, "its own bound is tighter");

        let of_teams = Allowance { tokens: Some(10), ..Allowance::default() };
        let limits = StarLimits { of_teams, ..limits };
        assert_eq!(for_team(&state, &limits, &place(0), 0).tokens, Some(10));
    }

    /// S1.05
    #[test]
    fn the_remaining_budget_is_shown_if_there_is_a_limit_or_few_steps_are_left() {
        let bare = StarLimits { deadline_sec: None, max_steps: 64, ..limits() };
        let of = |steps| Allowance { steps: Some(steps), ..Allowance::default() };
        assert!(shown(of(60), &bare).is_empty());
        assert_eq!(shown(of(10), &bare), ["steps: 10 of 64 left"]);
        let limits = StarLimits { max_nano_usd: Some(3_000_000_000), ..bare };
        let left = Allowance { nano_usd: Some(500_000_000), ..of(60) };
        assert_eq!(
            shown(left, &limits),
            ["steps: 60 of 64 left", "US dollars: 0.5000 of 3.0000 left"]
        );
    }
}
