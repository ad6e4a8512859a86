//! Tests of the circuit breaker, and what other tests of the star share with them.

use super::*;
use crate::{Allowance, MenuSize};
use perihelion_engine::ids::{RunId, ThreadId};

pub fn limits() -> StarLimits {
    StarLimits {
        max_steps: 10,
        max_tokens: None,
        max_nano_usd: None,
        deadline_sec: Some(60),
        max_tool_calls: 1,
        turn_tool_calls: None,
        of_teams: Allowance::default(),
        max_reflections: 1,
        result_bytes: 1,
        breaker_retries: 2,
        menu: MenuSize { all: 1, fitting: 1 },
        agent_tools: 1,
        approval_timeout: Duration::from_secs(1),
        interactive_approval_timeout: Duration::from_secs(1),
        asks_about_taint: true,
    }
}

/// Returns a place in a run that began this number of seconds after the Unix epoch.
pub fn place_at(seconds: u64) -> NodeLocation {
    let time = uuid::Timestamp::from_unix(uuid::NoContext, seconds, 0);
    NodeLocation {
        thread: ThreadId::new(),
        run: RunId(uuid::Uuid::new_v7(time)),
        step: 3,
        task: 0,
        tenant: "default".into(),
        request: None,
        node: "supervisor".into(),
        attempt: 1,
        namespace: "".into(),
    }
}

/// S1.05
#[test]
fn the_same_routing_without_progress_is_counted_and_progress_clears_the_count() {
    let agents = || vec!["b".to_owned(), "a".to_owned()];
    let first = count(&Routing::default(), agents(), "0/0/p".into());
    assert_eq!(first.retry_count, 0);
    let second = count(&first, vec!["a".into(), "b".into()], "0/0/p".into());
    assert_eq!(second.retry_count, 1);
    let third = count(&second, agents(), "0/0/p".into());
    assert_eq!(third.retry_count, 2);
    assert_eq!(count(&third, agents(), "0/0/q".into()).retry_count, 0);
    assert_eq!(count(&third, vec!["c".into()], "0/0/p".into()).retry_count, 0);
    let reported = cleared(&second);
    assert_eq!((reported.retry_count, reported.round), (0, 3));
    assert_eq!(count(&reported, agents(), "0/0/p".into()).retry_count, 0);
}
/// S1.05
#[test]
fn a_cycle_of_two_or_three_choices_counts_like_the_same_choice_twice() {
    let trips_after = |cycle: &[&str]| {
        let mut routing = Routing::default();
        (1..20).find(|round| {
            let agent = cycle[(round - 1) % cycle.len()].to_owned();
            routing = count(&routing, vec![agent], "0/0/plan".into());
            routing.retry_count == 2
        })
    };
    assert_eq!(trips_after(&["a"]), Some(3));
    assert_eq!(trips_after(&["a", "b"]), Some(5));
    assert_eq!(trips_after(&["a", "b", "c"]), Some(7));
    assert_eq!(trips_after(&["a", "b", "c", "d"]), None);
}

/// S1.05
#[test]
fn a_plan_that_the_turn_had_before_is_no_progress_and_a_new_output_is() {
    let mut routing = Routing::default();
    for (progress, retries) in
        [("0/0/p", 0), ("0/0/q", 0), ("0/0/p", 1), ("1/0/p", 0), ("1/0/q", 1), ("1/1/q", 0)]
    {
        routing = count(&routing, vec!["a".into()], progress.into());
        assert_eq!(routing.retry_count, retries, "{progress}");
    }
}

/// S1.05
#[test]
fn fruitless_searches_in_a_row_are_counted_and_hide_no_repeated_routing() {
    let search = |routing: &Routing, is_new| {
        let query = "q".to_owned();
        let found = Vec::new();
        count_searches(routing, vec![Search { query, found, is_new, round: routing.round + 1 }])
    };
    let route = |routing: &Routing| count(routing, vec!["a".into()], "0/0/p".into());
    let mut routing = route(&Routing::default());
    for (is_new, retries) in [(true, 0), (false, 0), (false, 1), (true, 1), (false, 1), (false, 2)]
    {
        routing = search(&routing, is_new);
        assert_eq!(routing.retry_count, retries, "{:?}", routing.searches);
    }
    assert_eq!((routing.round, routing.searches.len()), (7, 6));
    let between = route(&search(&route(&Routing::default()), true));
    assert_eq!(between.retry_count, 1, "the same routing as before the search");
    assert_eq!(search(&between, false).retry_count, 1, "the decision before it was no search");
}

/// S1.05: a thread may wait for a person for days; the run that continues has its whole time.
#[test]
fn the_time_limit_counts_from_the_start_of_the_run_and_not_of_the_turn() {
    let limits = limits();
    let mut state = GraphState::default();
    state.routing.started_at = 1_000_000_000;
    let after = |run, seconds: i64| exhausted(&state, &limits, &place_at(run), seconds * 1_000_000);
    let after = |run, seconds| after(run, seconds).map(|exhausted| exhausted.reason);
    // Of 60 s, 12 are for the answer.
    assert_eq!(after(1_000, 1_047), None);
    assert_eq!(after(1_000, 1_048).as_deref(), Some("the time limit of 60 s was reached"));
    assert_eq!(after(90_000, 90_047), None, "a day later, in a run of its own");
    assert!(after(90_000, 90_048).is_some());
    assert_eq!(after(90_000, 1_001), None, "a time recorded before the run began");
}
