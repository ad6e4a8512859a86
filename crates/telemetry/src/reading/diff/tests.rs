//! The alignment by value.

use chrono::DateTime;

use super::*;
use crate::{Reason, Status, TraceId};
use perihelion_engine::ids::ThreadId;

/// Makes spans from `(id, parent, what)`; the first is the root.
fn tree(list: &[(u32, u32, About)]) -> Vec<Span> {
    let id = |number: u32| SpanId::root(ThreadId(uuid::Uuid::nil()), number);
    let thread = ThreadId(uuid::Uuid::nil());
    let at = DateTime::from_timestamp(0, 0).unwrap();
    let span = |(number, parent, about): &(u32, u32, About)| Span {
        trace_id: TraceId::of_run(thread, 1),
        span_id: id(*number),
        parent: (*number > 0).then(|| id(*parent)),
        name: match about {
            About::Agent { agent, .. } => format!("invoke_agent {agent}"),
            About::Transition { from, to, .. } => {
                format!("graph.transition {from}→{}", to.join(","))
            }
            _ => "reflect".to_owned(),
        },
        start: at,
        end: at,
        status: Status::Ok,
        open: false,
        links: vec![],
        thread,
        within: None,
        run: 1,
        step: 1,
        node: None,
        spent: None,
        about: about.clone(),
    };
    list.iter().map(span).collect()
}

fn way(to: &[&str]) -> About {
    About::Transition {
        from: "supervisor".into(),
        to: to.iter().map(|to| (*to).to_owned()).collect(),
        reason: Reason::Decision,
        candidates: vec![],
        thought: None,
    }
}

fn agent(name: &str, verdict: &str) -> About {
    About::Agent {
        agent: name.into(),
        reflection_status: Some(verdict.into()),
        attempts: Some(1),
        usage: Default::default(),
        tools: vec![],
        task: None,
        output: None,
        error: None,
    }
}

fn judged(verdict: &str) -> About {
    About::Reflection {
        agent: "a".into(),
        verdict: Some(verdict.into()),
        attempt: 1,
        of: None,
        feedback: None,
    }
}

fn reported(diff: &TraceDiff) -> Vec<(usize, PairKind, Vec<&'static str>)> {
    let what = |pair: &Pair| pair.changes.iter().map(|change| change.what).collect();
    diff.pairs.iter().map(|pair| (pair.depth, pair.kind, what(pair))).collect()
}

#[test]
fn a_trace_is_the_same_as_itself() {
    let a =
        tree(&[(0, 0, way(&["a"])), (1, 0, agent("a", "APPROVED")), (2, 1, judged("APPROVED"))]);
    assert!(compare(&a, &a).is_same());
    assert!(compare(&[], &[]).is_same());
}

#[test]
fn different_routes_verdicts_and_agents_are_distinguished() {
    use PairKind::*;
    let a = tree(&[
        (0, 0, way(&["x"])),
        (1, 0, way(&["a"])),
        (2, 0, agent("a", "APPROVED")),
        (3, 2, judged("APPROVED")),
        (4, 0, way(&["qa"])),
    ]);
    let b = tree(&[
        (0, 0, way(&["x"])),
        (1, 0, way(&["a", "b"])),
        (2, 0, agent("a", "REJECTED")),
        (3, 2, judged("REJECTED")),
        (4, 2, judged("REJECTED")),
        (5, 0, agent("b", "APPROVED")),
        (6, 5, judged("APPROVED")),
        (7, 0, way(&["qa"])),
    ]);
    let diff = compare(&a, &b);
    assert_eq!(
        reported(&diff),
        [
            (0, Same, vec![]),
            (1, Changed, vec!["to"]),
            (1, Changed, vec!["verdict"]),
            (2, Changed, vec!["verdict"]),
            (2, OnlyB, vec![]),
            (1, OnlyB, vec![]),
            (2, OnlyB, vec![]),
            (1, Same, vec![]),
        ]
    );
    assert_eq!(compare(&b, &a).count(OnlyA), 3);
    assert!(compare(&a, &[]).pairs.iter().all(|pair| pair.kind == OnlyA));
}
