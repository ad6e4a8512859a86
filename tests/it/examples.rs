//! The examples do what they say.

use perihelion::runner::RunResult;

#[path = "../../examples/own_graph.rs"]
#[expect(dead_code, reason = "an example is a program of its own")]
mod own_graph;

#[tokio::test]
async fn a_graph_of_ones_own_runs_to_its_end() {
    let outcome = own_graph::run().await.unwrap();
    assert_eq!((outcome.result, outcome.steps), (RunResult::Done, 4));
    let drafts = ["ann on comets", "ben on comets", "ann on comets", "ben on comets"];
    assert_eq!(outcome.state.drafts, drafts);
}

#[test]
fn a_custom_graph_needs_fewer_than_forty_lines() {
    let source = include_str!("../../examples/own_graph.rs");
    let is_code = |line: &&str| {
        !line.is_empty() && !["//", "use ", "#["].iter().any(|start| line.starts_with(start))
    };
    let lines = source.lines().map(str::trim).filter(is_code).count();
    assert!(lines < 40, "{lines} lines");
}
