//! An order that is paid once and needs approval above a price, served to every client.
//!
//! Without arguments, it places an order with itself and prints what happened. With arguments, it is the program with
//! this graph: `order serve`, `order worker`, `order threads`, `order approvals`, `order replay THREAD`.

use std::process::ExitCode;
use std::sync::Arc;

use perihelion::graph::{Context, Graph, GraphBuilder, NodeError, NodeOutput, Target, node_fn};
use perihelion::nodes::approval;
use perihelion::{Graphs, OwnGraph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[path = "served/client.rs"]
#[expect(dead_code, reason = "each example uses a part of it")]
mod client;

perihelion::graph_state! {
    /// An order and its progress.
    #[derive(JsonSchema)]
    pub struct Order, update OrderUpdate, version 1 {
        item: String => overwrite,
        cents: u64 => overwrite,
        receipt: Option<String> => overwrite,
        log: Vec<String> => append,
    }
}

/// What a client sends.
#[derive(Deserialize, JsonSchema)]
struct NewOrder {
    item: String,
    /// The price in cents; above 10,000 a person approves it.
    cents: u64,
}

#[derive(Serialize, Deserialize)]
struct Receipt {
    number: String,
}

fn noted(text: impl Into<String>) -> OrderUpdate {
    OrderUpdate::new().log(vec![text.into()])
}

async fn check(ctx: Context<Order>) -> Result<NodeOutput<Order>, NodeError> {
    // Shown while the run lasts, and not kept.
    ctx.emit(json!({ "message": "checking the price" }));
    Ok(noted(format!("{} for {} cents", ctx.state().item, ctx.state().cents)).into())
}

/// Pays. The payment is recorded under a key of its content, so no crash pays twice.
async fn pay(ctx: Context<Order>) -> Result<NodeOutput<Order>, NodeError> {
    let request = json!({ "item": ctx.state().item, "cents": ctx.state().cents });
    let paid: Receipt = ctx
        .once("payment", &request, async |key: String| Ok(Receipt { number: key[..8].to_owned() }))
        .await?;
    Ok(noted("paid").receipt(Some(paid.number)).into())
}

fn graph() -> Result<Arc<Graph<Order>>, perihelion::graph::BuildError> {
    let ask = approval(
        |order: &Order| {
            let call = json!({ "item": order.item, "cents": order.cents });
            let why = ["it costs more than 100.00"];
            json!({ "server": "payments", "tool": "pay", "arguments": call, "reasons": why })
        },
        |verdict| {
            if verdict.approved {
                return NodeOutput::update(noted("approved"));
            }
            let why = verdict.reason.unwrap_or_default();
            NodeOutput::goto(noted(format!("denied: {why}")), [Target::End])
        },
    );
    GraphBuilder::new("order")
        .node("check", node_fn(check))
        .node("approve", ask)
        .node("pay", node_fn(pay))
        .entry("check")
        .route("check", |order: &Order| match order.cents {
            ..=10_000 => vec![Target::node("pay")],
            _ => vec![Target::node("approve")],
        })
        .leads_to("check", ["pay", "approve"])
        .edge("approve", "pay")
        .build()
}

/// Ten lines that serve it.
fn graphs() -> Result<Graphs, perihelion::graph::BuildError> {
    let order = OwnGraph::new(graph()?)
        .description("Orders one thing and pays for it")
        .input(|order: NewOrder| OrderUpdate::new().item(order.item).cents(order.cents))
        .state::<Order>();
    Ok(Graphs::new().with(order))
}

#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn drive(graphs: Graphs) -> client::Result<()> {
    let client = client::Client::serve(graphs, None).await?;
    let found = client.post("/assistants/search", json!({ "graph_id": "order" })).await?;
    println!("assistant: {}", found[0]["description"]);
    let schemas = client
        .get(&format!(
            "/assistants/{}/schemas",
            found[0]["assistant_id"].as_str().unwrap_or("order")
        ))
        .await?;
    println!("input: {}", schemas["input_schema"]["properties"]);

    let thread = client.thread().await?;
    let body = json!({ "assistant_id": "order", "input": { "item": "a globe", "cents": 25_000 } });
    let waits = client.post(&format!("{thread}/runs/wait"), body).await?;
    println!("asks: {}", waits["__interrupt__"][0]["value"]["action_requests"][0]);

    // The price was wrong: an edit goes through the reducers of the state, and the question is put again.
    let edit = json!({ "values": { "cents": 12_000, "log": ["the price was corrected"] } });
    client.post(&format!("{thread}/state"), edit).await?;
    let body = json!({ "assistant_id": "order", "input": null });
    client.post(&format!("{thread}/runs/wait"), body).await?;
    let body =
        json!({ "assistant_id": "order", "command": { "resume": { "decision": "approve" } } });
    let done = client.post(&format!("{thread}/runs/wait"), body).await?;
    println!("log: {}", done["log"]);
    let steps = client.get(&format!("{thread}/history?limit=100")).await?;
    println!("checkpoints: {}", steps.as_array().map_or(0, Vec::len));
    assert!(done["receipt"].is_string(), "{done}");
    client.stop().await
}

fn main() -> client::Result<ExitCode> {
    let graphs = graphs()?;
    if std::env::args().len() > 1 {
        return Ok(perihelion::run(graphs));
    }
    tokio::runtime::Runtime::new()?.block_on(drive(graphs))?;
    Ok(ExitCode::SUCCESS)
}
