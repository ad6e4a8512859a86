//! The circuit breaker: notices that nothing moves, and that a budget is spent (S1.05).

use super::search::Search;
use super::star::StarLimits;
use super::state::{GraphState, ResultStatus, Routing, Spent};
use crate::graph::Place;

/// Why a turn must end now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exhausted {
    /// The bound in one word, to count by.
    pub bound: &'static str,
    /// The same for people.
    pub reason: String,
}

/// Digests what counts as progress: successful results, artifacts, the plan.
pub(super) fn progress(state: &GraphState, plan: &[String]) -> String {
    let successes =
        state.results_of_turn().filter(|result| result.status == ResultStatus::Success).count();
    let plan = blake3::hash(plan.join("\n").as_bytes()).to_hex();
    format!("{successes}/{}/{}", state.global_state.size(), &plan[..16])
}

/// Counts a decision: the same routing without progress raises the retry count, anything else clears it.
pub(super) fn count(routing: &Routing, mut agents: Vec<String>, progress: String) -> Routing {
    agents.sort();
    let repeated =
        !routing.last.is_empty() && routing.last == agents && routing.progress == progress;
    Routing {
        retry_count: if repeated { routing.retry_count + 1 } else { 0 },
        last: agents,
        progress,
        round: routing.round + 1,
        ..routing.clone()
    }
}

/// Counts a decision that could not be accepted.
pub(super) fn count_invalid(routing: &Routing) -> Routing {
    Routing { retry_count: routing.retry_count + 1, round: routing.round + 1, ..routing.clone() }
}

/// Counts searches for agents: what brings an agent into the menu is a way on; several decisions in a row that bring none
/// are a standstill. The routing before them stays the one that the next is compared with.
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

/// Clears the count: the user said something new.
pub(super) fn cleared(routing: &Routing) -> Routing {
    let (last, progress) = (Vec::new(), String::new());
    Routing { retry_count: 0, last, progress, round: routing.round + 1, ..routing.clone() }
}

/// Returns why the run must end now, if a bound is reached.
pub(super) fn exhausted(
    state: &GraphState,
    limits: &StarLimits,
    place: &Place,
    now_micros: i64,
) -> Option<Exhausted> {
    let steps = place.step.saturating_sub(state.routing.first_step);
    if steps >= limits.max_steps {
        let reason = format!("the limit of {} steps was reached", limits.max_steps);
        return Some(Exhausted { bound: "steps", reason });
    }
    if let Some(spent) = overspent(state, limits, Spent::default()) {
        return Some(spent);
    }
    let began = state.routing.started_at.max(place.run.started_micros());
    let elapsed = now_micros.saturating_sub(began) / 1_000_000;
    if let Some(limit) =
        limits.deadline_sec.filter(|limit| elapsed >= i64::try_from(*limit).unwrap_or(i64::MAX))
    {
        let reason = format!("the time limit of {limit} s was reached");
        return Some(Exhausted { bound: "time", reason });
    }
    None
}

/// Returns which budget is spent, `more` being what a node spent that the state does not know yet.
pub(super) fn overspent(state: &GraphState, limits: &StarLimits, more: Spent) -> Option<Exhausted> {
    let mut spent = state.spent_in_turn();
    spent += more;
    let tokens = spent.usage.input_tokens + spent.usage.output_tokens;
    if let Some(limit) = limits.max_tokens.filter(|limit| tokens >= *limit) {
        let reason = format!("the budget of {limit} tokens was spent");
        return Some(Exhausted { bound: "tokens", reason });
    }
    if let Some(limit) = limits.max_nano_usd.filter(|limit| spent.nano_usd >= *limit) {
        let reason = format!("the budget of {} USD was spent", limit as f64 / 1e9);
        return Some(Exhausted { bound: "cost", reason });
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ids::{RunId, ThreadId};
    use crate::swarm::MenuSize;

    /// S1.05
    #[test]
    fn the_same_routing_without_progress_is_counted_and_progress_clears_the_count() {
        let agents = || vec!["b".to_owned(), "a".to_owned()];
        let first = count(&Routing::default(), agents(), "p".into());
        assert_eq!(first.retry_count, 0);
        let second = count(&first, vec!["a".into(), "b".into()], "p".into());
        assert_eq!(second.retry_count, 1);
        let third = count(&second, agents(), "p".into());
        assert_eq!(third.retry_count, 2);
        assert_eq!(count(&third, agents(), "q".into()).retry_count, 0);
        assert_eq!(count(&third, vec!["c".into()], "p".into()).retry_count, 0);
        let told = cleared(&second);
        assert_eq!((told.retry_count, told.round), (0, 3));
        assert_eq!(count(&told, agents(), "p".into()).retry_count, 0);
    }
    /// S1.05
    #[test]
    fn searches_that_find_nothing_new_in_a_row_are_counted_and_hide_no_repeated_routing() {
        let search = |routing: &Routing, is_new| {
            let (query, found) = ("q".to_owned(), Vec::new());
            count_searches(routing, vec![Search { query, found, is_new, round: routing.round + 1 }])
        };
        let route = |routing: &Routing| count(routing, vec!["a".into()], "p".into());
        let mut routing = route(&Routing::default());
        for (is_new, retries) in
            [(true, 0), (false, 0), (false, 1), (true, 1), (false, 1), (false, 2)]
        {
            routing = search(&routing, is_new);
            assert_eq!(routing.retry_count, retries, "{:?}", routing.searches);
        }
        assert_eq!((routing.round, routing.searches.len()), (7, 6));
        let between = route(&search(&route(&Routing::default()), true));
        assert_eq!(between.retry_count, 1, "the same routing as before the search");
        assert_eq!(search(&between, false).retry_count, 1, "the decision before it was no search");
    }

    /// S1.05: a thread may wait for a person for days; the run that goes on has its whole time.
    #[test]
    fn the_time_limit_counts_from_the_start_of_the_run_and_not_of_the_turn() {
        let limits = StarLimits {
            max_steps: 10,
            max_tokens: None,
            max_nano_usd: None,
            deadline_sec: Some(60),
            max_tool_calls: 1,
            max_reflections: 1,
            result_bytes: 1,
            breaker_retries: 2,
            menu: MenuSize { all: 1, fitting: 1 },
            agent_tools: 1,
            approval_timeout: Duration::from_secs(1),
            asks_about_taint: true,
        };
        let run_at = |seconds| {
            let time = uuid::Timestamp::from_unix(uuid::NoContext, seconds, 0);
            Place {
                thread: ThreadId::new(),
                run: RunId(uuid::Uuid::new_v7(time)),
                step: 3,
                task: 0,
                node: "supervisor".into(),
                attempt: 1,
                namespace: "".into(),
            }
        };
        let mut state = GraphState::default();
        state.routing.started_at = 1_000_000_000;
        let after =
            |run, seconds: i64| exhausted(&state, &limits, &run_at(run), seconds * 1_000_000);
        let after = |run, seconds| after(run, seconds).map(|exhausted| exhausted.reason);
        assert_eq!(after(1_000, 1_059), None);
        assert_eq!(after(1_000, 1_060).as_deref(), Some("the time limit of 60 s was reached"));
        assert_eq!(after(90_000, 90_059), None, "a day later, in a run of its own");
        assert!(after(90_000, 90_060).is_some());
        assert_eq!(after(90_000, 1_001), None, "a time recorded before the run began");
    }
}
