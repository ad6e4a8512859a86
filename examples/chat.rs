//! A chat agent with a tool: the model calls it until it can answer, and the answer is streamed word by word.
//!
//! Without arguments, it runs on a scripted model and prints the stream. With arguments, it is the program with this
//! graph and the model of the settings, such as `chat serve`: an assistant, an OpenAI model, an MCP tool and an A2A
//! skill.

use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use perihelion::graph::{BuildError, Graph, GraphBuilder};
use perihelion::llm::ChatMessage;
use perihelion::llm::scripted::{Reply, Script, ScriptedModel};
use perihelion::mcp::{
    CallContext, CallRound, Error, Reply as ToolReply, ServerInfo, ServerStatus, ToolHost,
    ToolOutcome,
};
use perihelion::nodes::React;
use perihelion::swarm::{Message, Messages, merge_messages};
use perihelion::{GraphParts, Graphs, OwnGraph};
use serde_json::json;

#[path = "served/client.rs"]
mod client;

perihelion::graph_state! {
    pub struct Chat, update ChatUpdate, version 1 {
        messages: Messages => with(merge_messages),
    }
}

/// A tool that is part of the program; those of MCP servers are in `parts.tools`.
struct Weather;

#[async_trait]
impl ToolHost for Weather {
    async fn scan(&self) -> Vec<ServerStatus> {
        Vec::new()
    }

    async fn exchange(
        &self,
        _: &str,
        _: &str,
        round: CallRound,
        _: CallContext,
    ) -> Result<ToolReply, Error> {
        let place = match &round {
            CallRound::Call { arguments, .. } => {
                arguments.get("place").cloned().unwrap_or_default()
            }
            _ => json!(null),
        };
        let text = format!("{place}: 21 degrees and dry");
        Ok(ToolReply::Done(ToolOutcome { is_error: false, text, structured: None, via: None }))
    }

    async fn close(&self) {}
}

fn server() -> Result<ServerInfo, serde_json::Error> {
    let place = json!({ "type": "object", "properties": { "place": { "type": "string" } } });
    let tool = json!({ "name": "weather", "description": "The weather of a place", "input_schema": place });
    let tool = serde_json::from_value(tool)?;
    Ok(ServerInfo { name: "weather".into(), tools: vec![tool], ..ServerInfo::default() })
}

fn graph(parts: &GraphParts, server: ServerInfo) -> Result<Arc<Graph<Chat>>, BuildError> {
    let prompt = |chat: &Chat| {
        let message_of = |message: &Message| match message.role.as_str() {
            "user" => ChatMessage::user(message.content.clone()),
            _ => ChatMessage::assistant(message.content.clone()),
        };
        chat.messages.iter().map(message_of).collect::<Vec<_>>()
    };
    let agent = React::new(Arc::clone(&parts.model), Arc::new(Weather), server);
    let agent = agent.node(prompt, |answered| {
        let reply = Message {
            id: answered.message_id,
            role: "assistant".into(),
            content: answered.text,
            ..Message::default()
        };
        ChatUpdate::new().messages([reply].into_iter().collect())
    });
    GraphBuilder::new("chat").node("agent", agent).entry("agent").build()
}

fn graphs() -> client::Result<Graphs> {
    let server = server()?;
    let chat = OwnGraph::built("chat", move |parts| graph(parts, server.clone()));
    Ok(Graphs::new().with(chat.description("Answers questions about the weather")))
}

#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn drive() -> client::Result<()> {
    let script = Script::new().respond_with(|request| {
        Some(match request.tool_results() {
            0 => Reply::call("weather", json!({ "place": "Padua" })),
            _ => Reply::text("It is warm and dry in Padua, at 21 degrees."),
        })
    });
    let model = ScriptedModel::start(script).await?;
    let client = client::Client::serve(graphs()?, Some(model.url())).await?;
    let question = json!({ "role": "user", "content": "How is the weather in Padua?" });

    let thread = client.thread().await?;
    let body = json!({
        "assistant_id": "chat", "input": { "messages": [question] }, "stream_mode": "messages-tuple",
    });
    let events = client.stream(&thread, body).await?;
    let pieces = events.iter().filter(|(name, _)| name == "messages");
    let pieces: Vec<&str> = pieces.filter_map(|(_, data)| data[0]["content"].as_str()).collect();
    println!("streamed: {}", pieces.join("|"));
    let state = client.get(&format!("{thread}/state")).await?;
    println!("messages: {}", state["values"]["messages"].as_array().map_or(0, Vec::len));

    // The same graph as an OpenAI model.
    let body = json!({ "model": "chat", "messages": [question] });
    let answer = client.post("/v1/chat/completions", body).await?;
    println!("as a model: {}", answer["choices"][0]["message"]["content"]);
    assert!(
        !pieces.is_empty() && answer["choices"][0]["message"]["content"].is_string(),
        "{answer}"
    );
    client.stop().await?;
    model.stop().await;
    Ok(())
}

fn main() -> client::Result<ExitCode> {
    if std::env::args().len() > 1 {
        return Ok(perihelion::run(graphs()?));
    }
    tokio::runtime::Runtime::new()?.block_on(drive())?;
    Ok(ExitCode::SUCCESS)
}
