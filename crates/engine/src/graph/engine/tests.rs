//! The engine by value: events in, commands out, no runtime.

mod routes;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::graph::{GraphBuilder, NodeEntry, Resolver, RetryPolicy, Target, node_fn};
use crate::ids::{InterruptId, ThreadId};

crate::graph_state! {
    pub struct Trail, update TrailUpdate, version 1 {
        lines: Vec<String> => append,
        last: String => overwrite,
        keyed: std::collections::BTreeMap<String, i64> => merge,
        odd: std::collections::BTreeMap<Pair, i64> => merge,
    }
}

/// A key that JSON objects cannot have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Pair(i32, i32);

type Out = Vec<Command<Trail>>;

/// A node that is never awaited here: the tests say themselves how tasks end.
fn idle() -> Arc<dyn crate::graph::Node<Trail>> {
    node_fn(|_| async { Ok(NodeOutput::update(TrailUpdate::new())) })
}

fn graph(
    nodes: &[&str],
    more: impl FnOnce(GraphBuilder<Trail>) -> GraphBuilder<Trail>,
) -> Arc<Graph<Trail>> {
    let builder =
        nodes.iter().fold(GraphBuilder::new("test"), |graph, name| graph.node(*name, idle()));
    more(builder).build().unwrap()
}

fn at(graph: &Arc<Graph<Trail>>, limits: Limits) -> (Engine<Trail>, Out) {
    let frontier = Frontier::of(graph.entry().iter().map(String::as_str));
    let position = Position { state: Arc::default(), head: 0, frontier, done: Vec::new() };
    let mut engine = Engine::new(Arc::clone(graph), position, limits, Wants::default());
    let mut out = Vec::new();
    engine.start(&mut out);
    (engine, out)
}

fn say(text: &str) -> NodeOutput<Trail> {
    NodeOutput::update(TrailUpdate::new().lines(vec![text.to_owned()]).last(text.to_owned()))
}

fn go<const N: usize>(text: &str, targets: [Target; N]) -> NodeOutput<Trail> {
    NodeOutput { goto: Some(targets.into()), ..say(text) }
}

fn end(engine: &mut Engine<Trail>, task: u32, result: Result<NodeOutput<Trail>, NodeError>) -> Out {
    let mut out = Vec::new();
    engine.handle(Event::Ended { task, result }, &mut out);
    out
}

fn committed(engine: &mut Engine<Trail>) -> Out {
    let mut out = Vec::new();
    engine.handle(Event::Committed, &mut out);
    out
}

/// Formats the commands that matter to a test.
fn in_words(out: &Out) -> Vec<String> {
    out.iter()
        .map(|command| match command {
            Command::Run(run) => format!("run {}:{}#{}", run.task, run.node, run.attempt),
            Command::SavePending { task, .. } => format!("keep {task}"),
            Command::Commit { seq, finished, .. } => format!("commit {seq} {finished}"),
            Command::Emit(_) => "emit".to_owned(),
            Command::Suspend(open) => format!("suspend {}", open.len()),
            Command::Finish => "finish".to_owned(),
            Command::Stopped => "stopped".to_owned(),
            Command::Fail(error) => format!("fail {error}"),
        })
        .collect()
}

fn question(n: u8) -> NodeError {
    let id = InterruptId::derive(ThreadId::new(), 1, 0, &[n]);
    NodeError::Interrupted(vec![crate::graph::Interrupt {
        id,
        kind: "clarification".into(),
        node: "a".into(),
        payload: json!(n),
    }])
}

/// S1.01: parallel updates merge in frontier order, whichever task ends first.
#[test]
fn updates_merge_in_frontier_order_in_any_order_of_completion() {
    let graph = graph(&["a", "b", "c"], |graph| graph.entry("a").entry("b").entry("c"));
    let mut results = Vec::new();
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let (mut engine, _) = at(&graph, Limits::default());
        let mut out = Vec::new();
        for task in order {
            out = end(&mut engine, task, Ok(say(["a", "b", "c"][task as usize])));
        }
        let Some(Command::Commit { delta, finished: true, .. }) = out.pop() else { panic!() };
        assert_eq!((engine.state().lines.join(""), &*engine.state().last), ("abc".into(), "c"));
        results.push(delta);
    }
    assert!(results.iter().all(|delta| *delta == results[0]));
}

#[test]
fn a_finished_task_is_stored_as_pending_unless_it_completes_its_step() {
    let graph = graph(&["a", "b"], |graph| graph.entry("a").entry("b"));
    let (mut engine, out) = at(&graph, Limits::default());
    assert_eq!(in_words(&out), ["run 0:a#1", "run 1:b#1"]);
    assert_eq!(in_words(&end(&mut engine, 1, Ok(say("b")))), ["keep 1"]);
    assert_eq!(in_words(&end(&mut engine, 0, Ok(say("a")))), ["commit 1 true"]);
    assert_eq!(in_words(&committed(&mut engine)), ["finish"]);
}

#[test]
fn a_finished_task_of_a_step_is_not_run_again_and_a_stale_pending_write_is_ignored() {
    let graph = graph(&["a", "b"], |graph| graph.entry("a").entry("b"));
    let done = |task, node: &str, text: &str| {
        let update = TrailUpdate::new().lines(vec![text.to_owned()]);
        (task, Written::<Trail>::new(node, update, None).0)
    };
    let position = Position {
        state: Arc::default(),
        head: 4,
        frontier: Frontier::of(["a", "b"]),
        done: vec![done(0, "a", "kept"), done(1, "somebody else", "stale"), done(9, "a", "stale")],
    };
    let mut engine = Engine::new(graph, position, Limits::default(), Wants::default());
    let mut out = Vec::new();
    engine.start(&mut out);
    assert_eq!(in_words(&out), ["run 1:b#1"]);
    assert_eq!(in_words(&end(&mut engine, 1, Ok(say("b")))), ["commit 5 true"]);
    assert_eq!(engine.state().lines, ["kept", "b"]);
}

#[test]
fn the_limit_of_parallel_tasks_is_respected_and_a_limit_of_zero_runs_one() {
    let graph = graph(&["a", "b", "c"], |graph| graph.entry("a").entry("b").entry("c"));
    let (mut engine, out) = at(&graph, Limits { max_parallel: 2, ..Limits::default() });
    assert_eq!(in_words(&out), ["run 0:a#1", "run 1:b#1"]);
    assert_eq!(in_words(&end(&mut engine, 1, Ok(say("b")))), ["keep 1", "run 2:c#1"]);
    let (_, out) = at(&graph, Limits { max_parallel: 0, ..Limits::default() });
    assert_eq!(in_words(&out), ["run 0:a#1"]);
}

#[test]
fn fan_out_keeps_the_order_of_its_targets_and_plain_targets_stay_single() {
    let graph = graph(&["a", "b", "x", "y"], |graph| graph.entry("a").entry("b"));
    let (mut engine, _) = at(&graph, Limits::default());
    let send = |n: i32| Target::send("x", json!(n));
    end(&mut engine, 1, Ok(go("b", [Target::node("y"), send(3), Target::End])));
    end(
        &mut engine,
        0,
        Ok(go("a", [send(2), send(1), Target::node("y"), Target::node(crate::graph::END)])),
    );
    let out = committed(&mut engine);
    let tasks: Vec<(String, Option<Value>)> = out
        .iter()
        .filter_map(|command| match command {
            Command::Run(run) => Some((run.node.clone(), run.input.clone())),
            _ => None,
        })
        .collect();
    let x = |n: i32| ("x".to_owned(), Some(json!(n)));
    assert_eq!(tasks, [x(2), x(1), ("y".to_owned(), None), x(3)]);
}

#[test]
fn an_unknown_target_is_refused_by_name_before_anything_is_merged() {
    let graph = graph(&["a"], |graph| graph.entry("a"));
    for target in [Target::node("nobody"), Target::send("nobody", json!(1))] {
        let (mut engine, _) = at(&graph, Limits::default());
        let out = end(&mut engine, 0, Ok(go("a", [target])));
        assert_eq!(
            in_words(&out),
            [
                "fail the node a leads to an unknown node: nobody; correct its target and resume the thread"
            ]
        );
        assert!(engine.state().lines.is_empty(), "nothing was merged");
    }
    let (mut engine, _) = at(&graph, Limits::default());
    let out = end(&mut engine, 0, Ok(go("a", [Target::send(crate::graph::END, json!(1))])));
    assert!(in_words(&out)[0].contains("unknown node: __end__"), "an end takes no input");
}

#[test]
fn with_a_resolver_an_unknown_target_parks_the_next_step_instead() {
    struct Nobody;
    impl Resolver<Trail> for Nobody {
        fn resolve(&self, _: &str) -> Option<Arc<NodeEntry<Trail>>> {
            None
        }
    }
    let graph = graph(&["a"], |graph| graph.entry("a").resolver(Arc::new(Nobody)));
    let (mut engine, _) = at(&graph, Limits::default());
    assert_eq!(
        in_words(&end(&mut engine, 0, Ok(go("a", [Target::node("b")])))),
        ["commit 1 false"]
    );
    let out = committed(&mut engine);
    assert!(
        matches!(&out[..], [Command::Fail(EngineError::Missing { node, why: None })] if node == "b")
    );
}

/// A node that is removed while it runs keeps its routes.
#[test]
fn a_node_that_vanishes_while_it_runs_does_not_lose_its_branch() {
    struct Once(std::sync::atomic::AtomicBool);
    impl Resolver<Trail> for Once {
        fn resolve(&self, name: &str) -> Option<Arc<NodeEntry<Trail>>> {
            let first = !self.0.swap(true, std::sync::atomic::Ordering::Relaxed);
            (name == "agent" && first).then(|| Arc::new(NodeEntry::new(idle()).then("b")))
        }
    }
    let once = Arc::new(Once(false.into()));
    let graph = graph(&["b"], |graph| graph.entry("agent").resolver(once));
    let (mut engine, out) = at(&graph, Limits::default());
    assert_eq!(in_words(&out), ["run 0:agent#1"]);
    end(&mut engine, 0, Ok(say("agent")));
    assert_eq!(in_words(&committed(&mut engine)), ["run 0:b#1"]);
}

#[test]
fn a_fanned_out_node_arrives_at_its_join_once_and_leaves_no_trace_for_the_next_round() {
    let graph = graph(&["a", "other", "map", "reduce"], |graph| {
        graph.entry("a").join(["other", "map"], "reduce").edge("reduce", "other")
    });
    let (mut engine, _) = at(&graph, Limits::default());
    let map = || Target::send("map", json!(0));
    end(&mut engine, 0, Ok(go("a", [Target::node("other"), map(), map()])));
    committed(&mut engine);
    (0..3).for_each(|task| drop(end(&mut engine, task, Ok(say("x")))));
    assert_eq!(in_words(&committed(&mut engine)), ["run 0:reduce#1"]);
    end(&mut engine, 0, Ok(say("reduce")));
    assert_eq!(in_words(&committed(&mut engine)), ["run 0:other#1"]);
    end(&mut engine, 0, Ok(say("other")));
    assert_eq!(in_words(&committed(&mut engine)), ["finish"], "map did not arrive in this round");
}

#[test]
fn questions_wait_for_the_other_tasks_and_are_asked_together() {
    let graph = graph(&["a", "b", "c"], |graph| graph.entry("a").entry("b").entry("c"));
    let (mut engine, _) = at(&graph, Limits::default());
    assert!(in_words(&end(&mut engine, 0, Err(question(1)))).is_empty());
    assert_eq!(in_words(&end(&mut engine, 1, Ok(say("b")))), ["keep 1"]);
    assert_eq!(in_words(&end(&mut engine, 2, Err(question(2)))), ["emit", "suspend 2"]);
}

#[test]
fn a_question_in_the_same_step_as_a_failure_is_asked_first() {
    let graph = graph(&["a", "b"], |graph| graph.entry("a").entry("b"));
    let (mut engine, _) = at(&graph, Limits::default());
    end(&mut engine, 0, Err(NodeError::failed("bad", "broke")));
    assert_eq!(in_words(&end(&mut engine, 1, Err(question(1)))), ["emit", "suspend 1"]);
}

#[test]
fn a_failure_lets_other_tasks_finish_and_names_its_node() {
    let graph = graph(&["a", "b"], |graph| graph.entry("a").entry("b"));
    let (mut engine, _) = at(&graph, Limits::default());
    assert!(in_words(&end(&mut engine, 0, Err(NodeError::failed("bad", "broke")))).is_empty());
    let out = end(&mut engine, 1, Ok(say("b")));
    assert_eq!(in_words(&out), ["keep 1", "fail the node a failed: broke"]);
}

#[test]
fn only_retryable_failures_are_retried_up_to_the_limit_of_the_policy() {
    let policy = RetryPolicy {
        max_attempts: 3,
        initial: Duration::from_millis(10),
        factor: 2.0,
        max_delay: Duration::from_secs(1),
    };
    let graph = GraphBuilder::new("test")
        .entry_node("a", NodeEntry::new(idle()).retry(policy))
        .entry("a")
        .build()
        .unwrap();
    let (mut engine, _) = at(&graph, Limits::default());
    for (attempt, delay) in [(2, 10), (3, 20)] {
        let out = end(&mut engine, 0, Err(NodeError::retryable("net", "refused")));
        let [Command::Run(run)] = &out[..] else { panic!("{:?}", in_words(&out)) };
        assert_eq!((run.attempt, run.after), (attempt, Some(Duration::from_millis(delay))));
    }
    let out = end(&mut engine, 0, Err(NodeError::retryable("net", "refused")));
    assert_eq!(in_words(&out), ["fail the node a failed: refused"]);
    let (mut engine, _) = at(&graph, Limits::default());
    let out = end(&mut engine, 0, Err(NodeError::failed("bad", "wrong")));
    assert_eq!(in_words(&out), ["fail the node a failed: wrong"]);
}

#[test]
fn a_stop_starts_no_new_task_and_keeps_finished_ones() {
    let graph = graph(&["a", "b"], |graph| graph.entry("a").entry("b"));
    let (mut engine, _) = at(&graph, Limits { max_parallel: 1, ..Limits::default() });
    engine.handle(Event::Stop, &mut Vec::new());
    assert_eq!(in_words(&end(&mut engine, 0, Ok(say("a")))), ["keep 0", "stopped"]);
}

#[test]
fn a_deadline_starts_no_new_task_and_is_the_reason_given() {
    let graph = graph(&["a", "b"], |graph| graph.entry("a").edge("a", "b"));
    let (mut engine, _) = at(&graph, Limits::default());
    engine.handle(Event::Deadline, &mut Vec::new());
    assert_eq!(in_words(&end(&mut engine, 0, Ok(say("a")))), ["commit 1 false"]);
    let out = committed(&mut engine);
    assert!(matches!(out[..], [Command::Fail(EngineError::Deadline)]), "{:?}", in_words(&out));
    let (mut engine, _) = at(&graph, Limits::default());
    engine.handle(Event::Deadline, &mut Vec::new());
    let out = end(&mut engine, 0, Err(NodeError::Cancelled));
    assert!(matches!(out[..], [Command::Fail(EngineError::Deadline)]), "{:?}", in_words(&out));
}

#[test]
fn the_step_limit_ends_a_run_that_loops_but_not_a_finished_run() {
    let graph = graph(&["a"], |graph| {
        graph.entry("a").route("a", |s| match s.lines.len() {
            2 => vec![],
            _ => vec![Target::node("a")],
        })
    });
    for (max_steps, last) in [
        (
            1,
            "fail the run reached its limit of 1 steps; resume to continue, or raise limits.max_steps",
        ),
        (2, "finish"),
    ] {
        let (mut engine, _) = at(&graph, Limits { max_steps, ..Limits::default() });
        let mut out = Vec::new();
        for _ in 0..max_steps {
            end(&mut engine, 0, Ok(say("x")));
            out = committed(&mut engine);
        }
        assert_eq!(in_words(&out), [last]);
    }
}

#[test]
fn an_update_without_a_json_form_fails_its_node_and_merges_no_field() {
    let graph = graph(&["a", "b"], |graph| graph.entry("a").entry("b"));
    let odd = || NodeOutput::update(TrailUpdate::new().odd([(Pair(1, 2), 3)].into()));
    let (mut engine, _) = at(&graph, Limits::default());
    assert!(in_words(&end(&mut engine, 0, Ok(odd()))).is_empty(), "the other task continues");
    let out = end(&mut engine, 1, Ok(say("b")));
    assert!(in_words(&out)[1].starts_with("fail the node a failed: its update cannot be stored"));
    let (mut engine, _) = at(&graph, Limits::default());
    end(&mut engine, 0, Ok(say("a")));
    let out = end(&mut engine, 1, Ok(odd()));
    assert!(
        in_words(&out)[0].starts_with("fail the update of the node b cannot be stored"),
        "{out:?}"
    );
    assert!(engine.state().lines.is_empty());
}

#[test]
fn updates_are_published_only_after_their_step_was_committed() {
    let graph = graph(&["a"], |graph| graph.entry("a"));
    let position = Position {
        state: Arc::default(),
        head: 0,
        frontier: Frontier::of(["a"]),
        done: Vec::new(),
    };
    let mut engine = Engine::new(graph, position, Limits::default(), Wants::ALL);
    let mut out = Vec::new();
    engine.start(&mut out);
    assert_eq!(in_words(&out), ["emit", "run 0:a#1"]);
    assert_eq!(in_words(&end(&mut engine, 0, Ok(say("a")))), ["emit", "commit 1 true"]);
    let out = committed(&mut engine);
    assert!(matches!(&out[0], Command::Emit(RunEvent::Update { step: 1, .. })));
    assert!(matches!(&out[1], Command::Emit(RunEvent::Checkpoint { step: 1, .. })));
    assert!(matches!(&out[2], Command::Emit(RunEvent::Values { step: 1, .. })));
    assert_eq!(in_words(&out)[3], "finish");
}

/// A random graph: per node its edges, per node how many copies of each target it fans out to.
fn any_graph() -> impl Strategy<Value = (Vec<Vec<usize>>, Vec<Vec<usize>>)> {
    (2usize..6).prop_flat_map(|nodes| {
        let targets = || proptest::collection::vec(0..nodes, 0..3);
        let all = move || proptest::collection::vec(targets(), nodes);
        (all(), all())
    })
}

/// Runs a random graph, ending running tasks in an order drawn from `choices`, and returns every commit.
fn run_random(edges: &[Vec<usize>], sends: &[Vec<usize>], choices: &[u8]) -> (Vec<Vec<u8>>, Trail) {
    let name = |node: usize| format!("n{node}");
    let mut builder = GraphBuilder::new("random");
    for node in 0..edges.len() {
        builder = builder.node(name(node), idle());
    }
    for (node, targets) in edges.iter().enumerate() {
        builder = targets.iter().fold(builder, |graph, to| graph.edge(&name(node), name(*to)));
    }
    let graph = builder.entry("n0").entry("n1").join(["n0", "n1"], "n1").build().unwrap();
    let (mut engine, mut out) = at(&graph, Limits { max_steps: 6, max_parallel: 3 });
    let mut running: Vec<(u32, String, Option<Value>)> = Vec::new();
    let mut commits = Vec::new();
    let mut choices = choices.iter().cycle();
    loop {
        let mut next = Vec::new();
        for command in out.drain(..) {
            match command {
                Command::Run(run) => running.push((run.task, run.node, run.input)),
                Command::Commit { delta, frontier, .. } => {
                    commits.extend([delta, frontier]);
                    engine.handle(Event::Committed, &mut next);
                }
                Command::SavePending { .. } | Command::Emit(_) => {}
                _ => return (commits, Trail::clone(engine.state())),
            }
        }
        out = next;
        if !out.is_empty() {
            continue;
        }
        let pick = usize::from(*choices.next().unwrap()) % running.len();
        let (task, node, input) = running.remove(pick);
        let number: usize = node[1..].parse().unwrap();
        let text = format!("{task}:{node}:{}", input.clone().unwrap_or_default());
        let mut output = say(&text);
        output.update = output.update.keyed([(node, engine.step() as i64)].into());
        if engine.step() < 3 && !sends[number].is_empty() {
            let send = |to: &usize| Target::send(name(*to), json!(engine.step()));
            output.goto = Some(sends[number].iter().map(send).collect());
        }
        engine.handle(Event::Ended { task, result: Ok(output) }, &mut out);
    }
}

proptest! {
    /// S1.01: every step has the same bytes for any graph and any order in which its tasks end.
    #[test]
    fn any_order_of_completion_commits_the_same_bytes(
        (edges, sends) in any_graph(),
        one in proptest::collection::vec(any::<u8>(), 1..40),
        other in proptest::collection::vec(any::<u8>(), 1..40),
    ) {
        let first = run_random(&edges, &sends, &one);
        let second = run_random(&edges, &sends, &other);
        prop_assert_eq!(&first.0, &second.0);
        prop_assert_eq!(
            serde_json::to_string(&first.1.lines).unwrap(),
            serde_json::to_string(&second.1.lines).unwrap()
        );
        // What is stored folds back into what was merged.
        let mut folded = Trail::default();
        for delta in first.0.iter().step_by(2) {
            for written in serde_json::from_slice::<Vec<Written<Trail>>>(delta).unwrap() {
                folded.apply(written.update);
            }
        }
        prop_assert_eq!(folded.lines, first.1.lines);
        prop_assert_eq!(folded.keyed, first.1.keyed);
    }
}
