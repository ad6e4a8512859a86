//! Subgraphs in traces: their threads' spans stand below the node that ran them.

use std::sync::Arc;

use futures::FutureExt as _;
use perihelion::checkpoint::{Error, Store};
use perihelion::config::TraceScope;
use perihelion::graph::{Context, EffectClass, Graph, GraphBuilder, Node, Outcome, node_fn};
use perihelion::ids::ThreadId;
use perihelion::runner::{RunOptions, Runner, Subgraph};
use perihelion::swarm::TraceContext;
use perihelion::telemetry::{About, Parents, Span, TraceId, View, Which, project, read};
use serde_json::json;

use super::{assert_whole, rows_of};
use crate::runner::{damage, world::*};
use crate::store_suite::{on_durable_stores, on_every_store, stores::Fixture};

on_every_store!(
    spans_of_a_subgraph_are_children_of_the_node_that_ran_it,
    each_trace_contains_the_work_of_the_subgraph_in_it,
    a_crash_inside_a_subgraph_leaves_one_whole_trace,
    a_call_in_a_subgraph_knows_its_span_in_the_trace_of_the_whole,
);

on_durable_stores!(a_family_of_which_a_member_names_another_root_has_no_trace);

fn within(
    name: &str,
    first: Arc<dyn Node<Story>>,
    second: Arc<dyn Node<Story>>,
) -> Arc<Graph<Story>> {
    GraphBuilder::new(name)
        .node("first", first)
        .node("second", second)
        .entry("first")
        .edge("first", "second")
        .build()
        .unwrap()
}

fn as_node(on: &Fixture, child: &Arc<Graph<Story>>) -> Arc<dyn Node<Story>> {
    let runner = Runner::new(Arc::clone(child), Arc::clone(&on.store));
    let enter = |_: &Context<Story>| Ok(input());
    Arc::new(Subgraph::<Story, Story>::new(runner, enter, |_, child| Ok(say(child.last.clone()))))
}

/// A node that asks a model, as it were.
fn asks_a_model(world: &World, name: &'static str) -> Arc<dyn Node<Story>> {
    let world = world.clone();
    node_fn(move |ctx: Context<Story>| {
        let world = world.clone();
        async move {
            world.ask_model(&ctx, name).await?;
            Ok(say(name))
        }
    })
}

fn asks_a_person() -> Arc<dyn Node<Story>> {
    node_fn(|ctx: Context<Story>| async move {
        let answer = ctx.interrupt("clarification", "which?").await?;
        Ok(say(answer.as_str().unwrap_or("?")))
    })
}

async fn spans(store: &dyn Store, thread: ThreadId, run: u32) -> Vec<Span> {
    let (rows, run) = read(store, thread, Which::Number(run)).await.unwrap();
    let spans = project(&rows, run, View { content: true, ..View::default() }).unwrap();
    assert_whole(&spans);
    let dump = store.export(thread).await.unwrap();
    if dump.info.root.is_some() {
        // The dump of a subgraph's thread is without those of its own subgraphs.
        return spans;
    }
    let view = View { content: true, ..View::default() };
    assert_eq!(project(&rows_of(dump), run, view).unwrap(), spans, "from the whole thread too");
    spans
}

/// Writes the tree as indented names, marked where it is in a subgraph and where it is not over.
fn tree(spans: &[Span]) -> Vec<String> {
    let depth = |span: &Span| {
        let parent = |span: &Span| spans.iter().find(|one| Some(one.span_id) == span.parent);
        std::iter::successors(parent(span), |span| parent(span)).count()
    };
    let line = |span: &Span| {
        let place = if span.within.is_some() { "| " } else { "" };
        let open = if span.open { " …" } else { "" };
        format!("{}{place}{}{open}", "  ".repeat(depth(span)), span.name)
    };
    spans.iter().map(line).collect()
}

/// X7
async fn spans_of_a_subgraph_are_children_of_the_node_that_ran_it(on: &Fixture) {
    let world = World::default();
    let deep = within("deep", world.speaker("x"), asks_a_model(&world, "y"));
    let team = within("team", world.speaker("x"), as_node(on, &deep));
    let outer = graph(|graph| {
        let team = as_node(on, &team);
        graph.node("a", world.speaker("a")).node("team", team).entry("a").edge("a", "team")
    });
    let runner = runner(&outer, &on.store);
    let thread = world.thread(&runner).await;
    assert!(is_done(&start(&runner, thread).await));
    let all = spans(on.store.as_ref(), thread, 1).await;
    assert_eq!(
        tree(&all),
        [
            "invoke_workflow story",
            "  invoke_agent a",
            "  graph.transition a→team",
            "  invoke_agent team",
            "    | invoke_workflow team",
            "      | invoke_agent first",
            "      | graph.transition first→second",
            "      | invoke_agent second",
            "        | invoke_workflow deep",
            "          | invoke_agent first",
            "          | graph.transition first→second",
            "          | invoke_agent second",
            "            | chat",
            "          | graph.transition second→__end__",
            "      | graph.transition second→__end__",
            "  graph.transition team→__end__",
        ]
    );
    let child = thread.child("team:3:0");
    assert!(
        all.iter().all(|span| span.thread == thread && span.trace_id == TraceId::of_run(thread, 1))
    );
    assert_eq!(
        (all[4].within, all[8].within),
        (Some(child), Some(child.child("team:3:0|second:3:0")))
    );
    assert!(all[1..].iter().all(|span| !span.open));

    // Asked for by its own id, the subgraph's thread is a trace of its own, with what is below it.
    let own = spans(on.store.as_ref(), child, 1).await;
    assert_eq!((own.len(), own[0].thread, own[0].within), (11, child, None));
    assert_eq!(own[0].trace_id, TraceId::of_run(child, 1));
}

async fn each_trace_contains_the_work_of_the_subgraph_in_it(on: &Fixture) {
    let world = World::default();
    let team = within("team", world.speaker("x"), asks_a_person());
    let outer = graph(|graph| graph.node("team", as_node(on, &team)).entry("team"));
    let runner = runner(&outer, &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    let [question] = interrupts(&outcome) else { panic!() };
    let asked = tree(&spans(on.store.as_ref(), thread, 1).await);
    assert_eq!(
        asked,
        [
            "invoke_workflow story",
            "  invoke_agent team",
            "    | invoke_workflow team",
            "      | invoke_agent first",
            "      | graph.transition first→second",
            "      | invoke_agent second",
            "        | interrupt clarification",
        ]
    );
    runner.answer(thread, question.id, &json!("that")).await.unwrap();
    assert!(is_done(&resume(&runner, thread).await));
    let answered = spans(on.store.as_ref(), thread, 2).await;
    assert_eq!(
        tree(&answered),
        [
            "invoke_workflow story",
            "  invoke_agent team",
            "    | invoke_workflow team",
            "      | invoke_agent second",
            "      | graph.transition second→__end__",
            "  graph.transition team→__end__",
        ]
    );
    let first = spans(on.store.as_ref(), thread, 1).await;
    assert_eq!(tree(&first), asked);
    let ids: std::collections::HashSet<_> =
        first.iter().chain(&answered).map(|span| span.span_id).collect();
    assert_eq!(ids.len(), first.len() + answered.len(), "an id in two traces");
}

async fn a_crash_inside_a_subgraph_leaves_one_whole_trace(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let slow = {
        let gate = gate.clone();
        node_fn(move |_| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                Ok(say("slow"))
            }
        })
    };
    let team = within("team", asks_a_model(&world, "x"), slow);
    let outer = graph(|graph| graph.node("team", as_node(on, &team)).entry("team"));
    let runner = runner(&outer, &on.store);
    let thread = world.thread(&runner).await;
    crash_at(&gate, runner.start(thread, input(), RunOptions::default())).await;
    let half = spans(on.store.as_ref(), thread, 1).await;
    assert_eq!(
        tree(&half),
        [
            "invoke_workflow story …",
            "  invoke_agent team …",
            "    | invoke_workflow team …",
            "      | invoke_agent first",
            "        | chat",
            "      | graph.transition first→second",
        ]
    );
    gate.open();
    assert!(is_done(&resume(&runner, thread).await));
    let whole = spans(on.store.as_ref(), thread, 2).await;
    assert!(whole.iter().all(|span| !span.open));
    for span in half.iter().filter(|span| !span.open) {
        assert!(whole.contains(span), "what was final has changed: {span:?}");
    }
    let About::Workflow { runs, .. } = &whole[2].about else { panic!() };
    assert_eq!(runs.len(), 2, "the subgraph's runs too");
}

async fn a_call_in_a_subgraph_knows_its_span_in_the_trace_of_the_whole(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let parents = Arc::new(Parents::new(Arc::clone(&on.store), TraceScope::Run));
    let calls = {
        let gate = gate.clone();
        let parents = Arc::clone(&parents);
        let world = world.clone();
        node_fn(move |ctx: Context<Story>| {
            let gate = gate.clone();
            let parents = Arc::clone(&parents);
            let world = world.clone();
            async move {
                gate.pass().await;
                let parents = &parents;
                let place = ctx.place();
                let perform = Box::new(move |key: String| {
                    async move { Ok(json!(parents.traceparent(place, &key).await)) }.boxed()
                });
                let action = EffectClass::Action { repeatable: true };
                let reported = ctx.effect(request(action, "s.echo", "a"), perform).await?;
                let Outcome::Value(reported) = reported else { panic!("{reported:?}") };
                world.note(reported.as_str().unwrap());
                Ok(say("called"))
            }
        })
    };
    let team = within("team", world.speaker("x"), calls);
    let outer = graph(|graph| graph.node("team", as_node(on, &team)).entry("team"));
    let runner = runner(&outer, &on.store);
    let thread = world.thread(&runner).await;
    // Both threads have two runs in one trace.
    crash_at(&gate, runner.start(thread, input(), RunOptions::default())).await;
    gate.open();
    assert!(is_done(&resume(&runner, thread).await));
    let all = spans(on.store.as_ref(), thread, 2).await;
    let call = all.iter().find(|span| matches!(span.about, About::Tool { .. })).unwrap();
    assert_eq!(call.trace_id, TraceId::of_run(thread, 1));
    let expected = format!("00-{}-{}-01", call.trace_id, call.span_id);
    assert_eq!(world.count(&expected), 1, "{expected} in {:?}", world.seen());
}

/// A team's own thread whose row names another root would be left out without a word.
async fn a_family_of_which_a_member_names_another_root_has_no_trace(on: &Fixture) {
    let (_, thread) = damage::four_steps(on, false).await;
    let child = damage::below(on, thread, "a:2:0").await;
    let trace = || read(on.store.as_ref(), thread, Which::Newest);
    assert_eq!(trace().await.unwrap().0.children.len(), 1);
    damage::sql(on, child, "UPDATE thread SET root_id = NULL WHERE id = {thread}").await;
    let refused = trace().await;
    let Err(perihelion::telemetry::Error::Store(error)) = refused else { panic!("{refused:?}") };
    assert!(matches!(error, Error::Corrupt { thread: it, .. } if it == thread), "{error:?}");
}
