//! A custom graph: two writers work in parallel, and an editor returns their drafts until they are good enough.

use std::sync::Arc;

use perihelion::checkpoint::MemoryStore;
use perihelion::graph::{Context, END, GraphBuilder, NodeError, NodeOutput, Target, node_fn};
use perihelion::runner::{RunOutcome, Runner};

perihelion::graph_state! {
    /// What the newsroom knows.
    pub struct Newsroom, update NewsroomUpdate, version 1 {
        drafts: Vec<String> => append,
        headline: String => overwrite,
    }
}

async fn write(ctx: Context<Newsroom>) -> Result<NodeOutput<Newsroom>, NodeError> {
    let draft = format!("{} on {}", ctx.place().node, ctx.state().headline);
    Ok(NodeOutput::update(NewsroomUpdate::new().drafts(vec![draft])))
}

/// Declares the graph and runs it once, on a store that lives as long as this process.
pub async fn run() -> Result<RunOutcome<Newsroom>, Box<dyn std::error::Error>> {
    let graph = GraphBuilder::new("newsroom")
        .node("ann", node_fn(write))
        .node("ben", node_fn(write))
        .node("editor", node_fn(async |_| Ok(NodeOutput::update(NewsroomUpdate::new()))))
        .entry("ann")
        .entry("ben")
        .join(["ann", "ben"], "editor")
        .route("editor", |state| match state.drafts.len() {
            4.. => vec![Target::node(END)],
            _ => vec![Target::node("ann"), Target::node("ben")],
        })
        .build()?;
    let runner = Runner::new(graph, Arc::new(MemoryStore::new()));
    Ok(runner.run_new(NewsroomUpdate::new().headline("comets".into())).await?)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let outcome = run().await?;
    println!("{:?} after {} steps: {:#?}", outcome.result, outcome.steps, outcome.state.drafts);
    Ok(())
}
