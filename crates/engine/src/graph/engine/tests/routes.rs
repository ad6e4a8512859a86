//! Successors of copied nodes, and joins.

use super::*;

/// A resolver can give a copy of another graph's node its own successor.
#[test]
fn an_edge_of_a_copied_node_replaces_its_route() {
    let routed =
        graph(&["a", "b"], |graph| graph.entry("a").route("a", |_| vec![Target::node("b")]));
    let copied = (*routed.resolve("a").unwrap()).clone().then("c");
    let graph = graph(&["c"], |graph| graph.entry("a").entry_node("a", copied));
    let (mut engine, _) = at(&graph, Limits::default());
    end(&mut engine, 0, Ok(say("a")));
    assert_eq!(in_words(&committed(&mut engine)), ["run 0:c#1"]);
}

#[test]
fn a_join_waits_for_all_of_its_nodes_over_several_steps_and_again_in_the_next_round() {
    let graph = graph(&["a", "b", "long", "end"], |graph| {
        graph.entry("a").entry("b").edge("b", "long").join(["a", "long"], "end").route("end", |s| {
            match s.lines.iter().filter(|text| *text == "end").count() {
                1 => vec![Target::node("b"), Target::node("long")],
                _ => vec![],
            }
        })
    });
    let (mut engine, _) = at(&graph, Limits::default());
    end(&mut engine, 0, Ok(say("a")));
    end(&mut engine, 1, Ok(say("b")));
    assert_eq!(in_words(&committed(&mut engine)), ["run 0:long#1"]);
    end(&mut engine, 0, Ok(say("long")));
    assert_eq!(in_words(&committed(&mut engine)), ["run 0:end#1"]);
    end(&mut engine, 0, Ok(say("end")));
    // In the second round `a` never comes: the join stays closed, and does not hold the run.
    assert_eq!(in_words(&committed(&mut engine)), ["run 0:b#1", "run 1:long#1"]);
    end(&mut engine, 0, Ok(say("b")));
    end(&mut engine, 1, Ok(say("long")));
    assert_eq!(in_words(&committed(&mut engine)), ["run 0:long#1"]);
    end(&mut engine, 0, Ok(say("long")));
    assert_eq!(in_words(&committed(&mut engine)), ["finish"]);
}
