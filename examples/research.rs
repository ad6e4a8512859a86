//! Research: the sources are read in parallel by a subgraph, a model writes the report, and a person chooses its length.
//!
//! Without arguments, it runs on a scripted model and prints what happened. With arguments, it is the program with this
//! graph and the model of the settings, such as `research serve`.

use std::process::ExitCode;
use std::sync::Arc;

use perihelion::graph::{
    BuildError, Context, Graph, GraphBuilder, NodeError, NodeOutput, Target, node_fn,
};
use perihelion::llm::ChatMessage;
use perihelion::llm::scripted::{Reply, Script, ScriptedModel};
use perihelion::nodes::model_call;
use perihelion::runner::{Runner, Subgraph};
use perihelion::{GraphParts, Graphs, OwnGraph};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[path = "served/client.rs"]
mod client;

perihelion::graph_state! {
    /// What one source says.
    pub struct Source, update SourceUpdate, version 1 {
        name: String => overwrite,
        text: String => overwrite,
    }
}

perihelion::graph_state! {
    pub struct Research, update ResearchUpdate, version 1 {
        topic: String => overwrite,
        sources: Vec<String> => overwrite,
        length: String => overwrite,
        findings: Vec<String> => append,
        report: String => overwrite,
    }
}

async fn read(ctx: Context<Source>) -> Result<NodeOutput<Source>, NodeError> {
    let name = &ctx.state().name;
    let finding = format!("{name} says it moves");
    let text: String = ctx.read_only("library", name, async |_| Ok(finding.clone())).await?;
    Ok(SourceUpdate::new().text(text).into())
}

/// What a client sends.
#[derive(Deserialize, JsonSchema)]
struct NewResearch {
    topic: String,
    /// The names of the sources to read.
    sources: Vec<String>,
}

/// Asks a question of its own form: clients see this value, and their answer is the result.
async fn choose(ctx: Context<Research>) -> Result<NodeOutput<Research>, NodeError> {
    let schema = json!({ "title": "Length", "enum": ["short", "long"] });
    let question = json!({ "ask": "How long?", "response_schema": schema });
    let length: String = ctx.ask("length", &question).await?;
    Ok(ResearchUpdate::new().length(length).into())
}

fn graph(parts: &GraphParts) -> Result<Arc<Graph<Research>>, BuildError> {
    let source = GraphBuilder::new("source").node("read", node_fn(read)).entry("read").build()?;
    let source = Subgraph::new(
        Runner::new(source, Arc::clone(&parts.store)),
        |ctx: &Context<Research>| Ok(SourceUpdate::new().name(ctx.input()?)),
        |_, source: &Source| Ok(ResearchUpdate::new().findings(vec![source.text.clone()]).into()),
    );
    let prompt = |state: &Research| {
        let findings = state.findings.join("; ");
        vec![ChatMessage::user(format!("Write a {} report: {findings}", state.length))]
    };
    let report = model_call(Arc::clone(&parts.model), prompt, |answer| {
        ResearchUpdate::new().report(answer.content)
    });
    GraphBuilder::new("research")
        .node("plan", node_fn(async |_| Ok(ResearchUpdate::new().into())))
        .node("source", Arc::new(source))
        .node("choose", node_fn(choose))
        .node("report", report)
        .entry("plan")
        .route("plan", |state: &Research| {
            state.sources.iter().map(|name| Target::send("source", json!(name))).collect()
        })
        .leads_to("plan", ["source"])
        .edge("source", "choose")
        .edge("choose", "report")
        .build()
}

fn graphs() -> Graphs {
    let research = OwnGraph::built("research", graph).input(|asked: NewResearch| {
        ResearchUpdate::new().topic(asked.topic).sources(asked.sources)
    });
    Graphs::new().with(research.description("Reads sources in parallel and writes a report"))
}

#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn drive() -> client::Result<()> {
    let script = Script::new().respond_with(|request| {
        let is_short = request.last_text().contains("short");
        Some(Reply::text(if is_short { "The earth moves." } else { "Still, the earth moves on." }))
    });
    let model = ScriptedModel::start(script).await?;
    let client = client::Client::serve(graphs(), Some(model.url())).await?;
    let drawing = client.get("/assistants/research/graph").await?;
    println!("nodes: {}", drawing["nodes"].as_array().map_or(0, Vec::len));

    let thread = client.thread().await?;
    let input = json!({ "topic": "the earth", "sources": ["Bruno", "Galilei", "Kepler"] });
    let body = json!({ "assistant_id": "research", "input": input, "stream_mode": ["updates"] });
    for (name, data) in client.stream(&thread, body).await? {
        println!("{name}: {data}");
    }
    let body = json!({
        "assistant_id": "research", "command": { "resume": "short" },
        "stream_mode": ["updates", "messages-tuple"],
    });
    let events = client.stream(&thread, body).await?;
    for (name, data) in events.iter().filter(|(name, _)| name == "updates") {
        println!("{name}: {data}");
    }
    let state = client.get(&format!("{thread}/state")).await?;
    println!("report: {}", state["values"]["report"]);
    assert_eq!(state["values"]["report"], "The earth moves.");
    client.stop().await?;
    model.stop().await;
    Ok(())
}

fn main() -> client::Result<ExitCode> {
    if std::env::args().len() > 1 {
        return Ok(perihelion::run(graphs()));
    }
    tokio::runtime::Runtime::new()?.block_on(drive())?;
    Ok(ExitCode::SUCCESS)
}
