//! The circuit breaker: it detects missing progress and spent budgets (S1.05).

use std::collections::BTreeSet;
use std::time::Duration;

use crate::{Decided, FinishReason, GraphState, ResultStatus, Routing, Search, Spent, StarLimits};
use perihelion_engine::graph::NodeLocation;

/// Why a turn must end now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exhausted {
    /// The bound in one word, to count by.
    pub bound: &'static str,
    /// The same in the contract's words.
    pub why: FinishReason,
    /// The same for people.
    pub reason: String,
}

impl Exhausted {
    fn limit(bound: &'static str, reason: String) -> Self {
        Self { bound, why: FinishReason::Limit, reason }
    }

    pub(super) fn repeated(reason: &str) -> Self {
        let why = FinishReason::NoProgress;
        Self { bound: "repeated_routing", why, reason: reason.to_owned() }
    }

    pub(super) fn no_agents() -> Self {
        let reason = "there was no agent that could be asked".to_owned();
        Self { bound: "no_agents", why: FinishReason::NoAgents, reason }
    }
}

/// The longest cycle of choices that counts like a repeated one.
const LONGEST_CYCLE: usize = 3;

/// Digests what counts as progress: how many different outputs and artifacts there are, and the plan.
pub(super) fn progress(state: &GraphState, plan: &[String]) -> String {
    let succeeded = state.results_of_turn().filter(|result| result.status == ResultStatus::Success);
    let outputs: BTreeSet<&str> = succeeded.map(|result| result.output.trim()).collect();
    let artifacts = state.global_state.iter().map(|(_, artifact)| artifact.digest());
    let artifacts: BTreeSet<[u8; 32]> = artifacts.collect();
    let plan: Vec<&str> = plan.iter().map(|line| line.trim()).collect();
    let plan = blake3::hash(plan.join("\n").as_bytes()).to_hex();
    format!("{}/{}/{}", outputs.len(), artifacts.len(), &plan[..16])
}

/// Counts a decision: a choice that repeats without progress raises the retry count, anything else clears it.
///
/// A choice repeats if its agents are those of the previous decision, or if it completes a cycle of two or three
/// choices for the second time. Progress is an output, an artifact or a plan that the turn did not have before.
pub(super) fn count(routing: &Routing, mut agents: Vec<String>, progress: String) -> Routing {
    agents.sort();
    let earlier = decisions(routing);
    let mut decided = earlier.clone();
    decided.push(Decided { agents: agents.clone(), progress: progress.clone() });
    let repeated = cycle(&decided).is_some();
    Routing {
        retry_count: if repeated { routing.retry_count + 1 } else { 0 },
        last: agents,
        progress,
        earlier,
        round: routing.round + 1,
        ..routing.clone()
    }
}

fn decisions(routing: &Routing) -> Vec<Decided> {
    let last = Decided { agents: routing.last.clone(), progress: routing.progress.clone() };
    let last = Some(last).filter(|last| !last.agents.is_empty());
    routing.earlier.iter().cloned().chain(last).collect()
}

/// Returns the length of the shortest cycle that the newest decision completes without progress.
fn cycle(decided: &[Decided]) -> Option<usize> {
    (1..=LONGEST_CYCLE).find(|length| {
        let Some(start) = decided.len().checked_sub(2 * length) else { return false };
        let (before, now) = decided[start..].split_at(*length);
        let is_same = before.iter().zip(now).all(|(one, other)| one.agents == other.agents);
        is_same && !has_progress(decided, decided.len() - 1 - length)
    })
}

fn has_progress(decided: &[Decided], since: usize) -> bool {
    let parts = |one: &Decided| {
        let (found, plan) = one.progress.rsplit_once('/').unwrap_or_default();
        (found.to_owned(), plan.to_owned())
    };
    let plans =
        |range: &[Decided]| -> BTreeSet<String> { range.iter().map(|one| parts(one).1).collect() };
    let Some(newest) = decided.last() else { return false };
    let is_new_plan = !plans(&decided[since + 1..]).is_subset(&plans(&decided[..=since]));
    is_new_plan || parts(newest).0 != parts(&decided[since]).0
}

pub(super) fn repetition(routing: &Routing) -> String {
    let decided = decisions(routing);
    match cycle(&decided) {
        Some(length @ 2..) => {
            let choices: Vec<String> =
                decided[decided.len() - length..].iter().map(|one| one.agents.join(", ")).collect();
            format!("the same choices were repeated without progress: {}", choices.join("; "))
        }
        _ => format!(
            "the same agents were chosen {} times in a row without progress: {}",
            routing.retry_count + 1,
            routing.last.join(", ")
        ),
    }
}

pub(super) fn count_invalid(routing: &Routing) -> Routing {
    Routing { retry_count: routing.retry_count + 1, round: routing.round + 1, ..routing.clone() }
}

/// Counts searches for agents: a search that adds an agent to the catalog is progress; several decisions in a row
/// without one are not. The next routing is compared with the one before the searches.
pub(super) fn count_searches(routing: &Routing, searches: Vec<Search>) -> Routing {
    let is_fruitless = !searches.iter().any(|search| search.is_new);
    let mut before =
        routing.searches.iter().filter(|search| search.round == routing.round).peekable();
    let again = before.peek().is_some() && !before.any(|search| search.is_new);
    let mut routing = Routing {
        retry_count: routing.retry_count + u32::from(is_fruitless && again),
        round: routing.round + 1,
        ..routing.clone()
    };
    routing.searches.extend(searches);
    routing
}

/// Clears the count: the user wrote something new.
pub(super) fn cleared(routing: &Routing) -> Routing {
    let round = routing.round + 1;
    let Routing { last, progress, earlier, .. } = Routing::default();
    Routing { retry_count: 0, last, progress, earlier, round, ..routing.clone() }
}

/// Returns why the run must end now, if a bound is reached.
pub(super) fn exhausted(
    state: &GraphState,
    limits: &StarLimits,
    place: &NodeLocation,
    now_micros: i64,
) -> Option<Exhausted> {
    let bounds = limits.for_turn(state);
    if steps(state, place) >= bounds.max_steps {
        let reason = format!("the limit of {} steps was reached", bounds.max_steps);
        return Some(Exhausted::limit("steps", reason));
    }
    let calls = bounds.turn_tool_calls.filter(|most| state.tool_calls_of_turn() >= *most);
    if let Some(most) = calls {
        let reason = format!("the budget of {most} tool calls was spent");
        return Some(Exhausted::limit("tool_calls", reason));
    }
    if let Some(spent) = overspent(state, limits, Spent::default()) {
        return Some(spent);
    }
    out_of_time(state, limits, place, now_micros)
}

/// Returns how many super-steps the turn has made, including its teams.
pub(super) fn steps(state: &GraphState, place: &NodeLocation) -> u64 {
    place.step.saturating_sub(state.routing.first_step) + state.spent_in_turn().steps
}

/// Returns that the supervisor has taken as many decisions as the request allows, if it has.
pub(super) fn out_of_turns(state: &GraphState) -> Option<Exhausted> {
    let most = state.preferences.max_turns.filter(|most| state.routing.round >= *most)?;
    Some(Exhausted::limit("turns", format!("the limit of {most} turns was reached")))
}

pub(super) fn out_of_time(
    state: &GraphState,
    limits: &StarLimits,
    place: &NodeLocation,
    now_micros: i64,
) -> Option<Exhausted> {
    let limits = limits.for_turn(state);
    let limit = limits.deadline_sec?;
    let is_late = time_left(began(state, place), limits.work_time(), now_micros)?.is_zero();
    let reason = format!("the time limit of {limit} s was reached");
    is_late.then(|| Exhausted::limit("time", reason))
}

/// Returns when the time of the present run began, in microseconds since the Unix epoch.
pub(super) fn began(state: &GraphState, place: &NodeLocation) -> i64 {
    state.routing.started_at.max(place.run.started_micros())
}

/// Returns the remaining time after `began`, if there is a limit.
pub(super) fn time_left(began: i64, most: Option<Duration>, now_micros: i64) -> Option<Duration> {
    let elapsed = u64::try_from(now_micros.saturating_sub(began)).unwrap_or(0);
    Some(most?.saturating_sub(Duration::from_micros(elapsed)))
}

/// Returns the spent budget, if any; `more` is the usage of a node that the state does not contain yet.
pub(super) fn overspent(state: &GraphState, limits: &StarLimits, more: Spent) -> Option<Exhausted> {
    let limits = limits.for_turn(state);
    let mut spent = state.spent_in_turn();
    spent += more;
    let tokens = spent.usage.total();
    if let Some(limit) = limits.max_tokens.filter(|limit| tokens >= *limit) {
        let reason = format!("the budget of {limit} tokens was spent");
        return Some(Exhausted::limit("tokens", reason));
    }
    if let Some(limit) = limits.max_nano_usd.filter(|limit| spent.nano_usd >= *limit) {
        let reason = format!("the budget of {} USD was spent", limit as f64 / 1e9);
        return Some(Exhausted::limit("cost", reason));
    }
    None
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
pub(super) mod tests;
