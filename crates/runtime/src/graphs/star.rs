//! The supervisor graph as one of the graphs.

use std::sync::Arc;

use serde_json::json;

use super::own::about;
use super::typed::Typed;
use super::{About, Drawing, Served};
use perihelion_engine::checkpoint::MemoryStore;
use perihelion_engine::graph::{BuildError, END, Edge, GraphBuilder, State, Written, node_fn};
use perihelion_engine::runner::{INPUT, Runner};
use perihelion_star::{GRAPH, GraphState, GraphUpdate, node_names};

pub fn about_star() -> Arc<About> {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    let context = json!({ "type": "object", "additionalProperties": text });
    Arc::new(About {
        description: Some("Answers questions with a supervised team of agents".to_owned()),
        input_schema: json!({
            "title": format!("{GRAPH}_input"),
            "type": "object",
            "properties": {
                "messages": { "type": "array" },
                "question": text,
                "context": context,
                "prefer_agents": texts,
                "disable_agents": texts,
                "team": text,
                "max_turns": { "type": "integer" },
                "include_data": { "type": "boolean" },
                "trace": { "type": "boolean" },
                "system_prompt": text,
            },
        }),
        context_schema: context,
        ..about::<GraphState>(GRAPH)
    })
}

pub(super) fn drawing(agents: Vec<String>) -> Drawing {
    let [preprocess, supervisor, qa] = node_names().map(str::to_owned);
    let edge = |from: &str, to: &str, is_conditional| Edge {
        from: from.to_owned(),
        to: to.to_owned(),
        is_conditional,
    };
    let mut edges = vec![edge(&preprocess, &supervisor, false)];
    for agent in &agents {
        edges.extend([edge(&supervisor, agent, true), edge(agent, &supervisor, false)]);
    }
    edges.extend([edge(&supervisor, &qa, true), edge(&qa, END, false)]);
    let nodes = [preprocess.clone(), supervisor].into_iter().chain(agents).chain([qa]);
    Drawing { entry: vec![preprocess], nodes: nodes.collect(), edges }
}

pub fn star(runner: Runner<GraphState>) -> Typed<GraphState> {
    Typed { runner, about: about_star(), input: None, show: Some(with_request) }
}

/// Makes the supervisor graph without nodes and threads, for tests of its stored data.
#[doc(hidden)]
pub fn supervisor_offline() -> Result<Arc<dyn Served>, BuildError> {
    let graph = GraphBuilder::new(GRAPH)
        .node(GRAPH, node_fn(async |_| Ok(GraphUpdate::new().into())))
        .entry(GRAPH)
        .build()?;
    Ok(Arc::new(star(Runner::new(graph, Arc::new(MemoryStore::new())))))
}

/// Adds the message that the next step takes in from an input.
fn with_request(
    state: &GraphState,
    written: &[Written<GraphState>],
    step: u64,
) -> Option<GraphState> {
    let is_input =
        |one: &Written<GraphState>| one.node == INPUT && one.update.input_request.is_some();
    written.iter().any(is_input).then(|| {
        let mut shown = state.clone();
        let request = state.next_request(step + 1);
        shown.apply(GraphUpdate::new().messages([request].into_iter().collect()));
        shown
    })
}
