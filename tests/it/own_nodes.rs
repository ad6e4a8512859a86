//! A graph of one's own made of ready nodes: a model call, a tool call, an agent and an approval, on a real server.

use std::sync::Arc;

use perihelion::checkpoint::MemoryStore;
use perihelion::graph::{GraphBuilder, NodeOutput, Target};
use perihelion::ids::ThreadId;
use perihelion::llm::scripted::{Reply, Script, ScriptedModel, ScriptedServer};
use perihelion::llm::{ChatMessage, ChatModel, OpenAiModel};
use perihelion::mcp::{Pool, PoolOptions, ServersFile, ToolHost};
use perihelion::nodes::{React, approval, model_call, tool_call};
use perihelion::runner::{RunOptions, RunResult, Runner};
use serde_json::{Map, json};

perihelion::graph_state! {
    pub struct Draft, update DraftUpdate, version 1 {
        question: String => overwrite,
        lines: Vec<String> => append,
        approved: bool => overwrite,
    }
}

fn write(text: String) -> DraftUpdate {
    DraftUpdate::new().lines(vec![text])
}

/// S1.06 and X2 for graphs of one's own: what was sent before a person was asked is not sent again after the answer.
#[tokio::test]
async fn ready_nodes_form_a_graph_whose_calls_happen_once() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("lines.log");
    let script = Script::new().respond_with(|request| {
        let is_agent = request.agent.as_deref() == Some("agent");
        Some(if !is_agent {
            Reply::text("A draft.")
        } else if request.tool_results() == 0 {
            Reply::call("look_up", json!({ "key": "color" }))
        } else {
            Reply::text("It is teal.")
        })
    });
    let server = ScriptedModel::start(script).await.unwrap();
    let env = |name: &str| (name == "OPENAI_BASE_URL").then(|| server.url().to_owned());
    let settings = perihelion::config::Settings::load(Default::default(), None, &env).unwrap();
    let model: Arc<dyn ChatModel> = Arc::new(OpenAiModel::new(&settings.models).unwrap());
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/workshop_mcp_server");
    let facts = json!({ "color": "The color is teal." }).to_string();
    let table = format!(
        "[mcp_servers.shop]\ncommand = {program:?}\nenv = {{ FACTS = {facts:?}, LOG = {log:?} }}\n"
    );
    let file = ServersFile::parse("mcp-servers.toml".as_ref(), &table, &|_| None).unwrap();
    let tools: Arc<dyn ToolHost> = Arc::new(Pool::new(file, PoolOptions::default()));
    let info = tools.scan().await.remove(0).outcome.unwrap();

    let line = |_: &Draft| Map::from_iter([("line".to_owned(), json!("once"))]);
    let asked = |state: &Draft| vec![ChatMessage::user(state.question.clone())];
    let graph = GraphBuilder::new("desk")
        .node("draft", model_call(Arc::clone(&model), asked, |answer| write(answer.content)))
        .node(
            "note",
            tool_call(Arc::clone(&tools), ("shop", "append"), line, |out| write(out.text)),
        )
        .node(
            "agent",
            React::new(model, Arc::clone(&tools), info)
                .node(asked, |answered| write(answered.text)),
        )
        .node(
            "approve",
            approval(
                |state: &Draft| json!({ "about": state.question }),
                |verdict| {
                    let next = if verdict.approved { vec![] } else { vec![Target::node("draft")] };
                    NodeOutput::goto(DraftUpdate::new().approved(verdict.approved), next)
                },
            ),
        )
        .entry("draft")
        .edge("draft", "note")
        .edge("note", "agent")
        .edge("agent", "approve")
        .build()
        .unwrap();
    let runner = Runner::new(graph, Arc::new(MemoryStore::new()));
    let thread = ThreadId::new();
    let input = DraftUpdate::new().question("Which color?".into());
    let waits = runner.start(thread, input, RunOptions::default()).await.unwrap();
    let RunResult::Interrupted(open) = &waits.result else { panic!("{waits:?}") };
    assert_eq!((&*open[0].kind, &open[0].payload["about"]), ("approval", &json!("Which color?")));
    runner.answer(thread, open[0].id, &json!({ "approved": true })).await.unwrap();
    let done = runner.resume(thread, RunOptions::default()).await.unwrap();
    assert_eq!(done.result, RunResult::Done);
    let lines: Vec<&str> = done.state.lines.iter().map(String::as_str).collect();
    assert_eq!(lines, ["A draft.", "line 1", "It is teal."]);
    assert!(done.state.approved);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "once\n");
    assert_eq!(server.requests().len(), 3);
    tools.close().await;
    server.stop().await;
}

/// A graph of an agent, or of one tool call, with a pool of its own; the model calls `append` with these lines.
struct Bench {
    model: ScriptedServer,
    tools: Arc<dyn ToolHost>,
    runner: Runner<Draft>,
    log: std::path::PathBuf,
    _directory: tempfile::TempDir,
}

impl Bench {
    /// `lines` stand in the table of the server, after the agent was made of what it said without them.
    async fn open(lines: &str, script: Script) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("lines.log");
        let test = std::env::current_exe().unwrap();
        let program = test.ancestors().nth(2).unwrap().join("examples/workshop_mcp_server");
        let pool = |lines: &str| {
            let table = format!(
                "[mcp_servers.shop]\ncommand = {program:?}\nenv = {{ FACTS = \"{{}}\", LOG = {log:?} }}\n{lines}\n"
            );
            let file = ServersFile::parse("mcp-servers.toml".as_ref(), &table, &|_| None).unwrap();
            Pool::new(file, PoolOptions::default())
        };
        let before = pool("");
        let info = before.scan().await.remove(0).outcome.unwrap();
        before.close().await;
        let tools = pool(lines);
        tools.scan().await;
        let tools: Arc<dyn ToolHost> = Arc::new(tools);
        let model = ScriptedModel::start(script).await.unwrap();
        let env = |name: &str| (name == "OPENAI_BASE_URL").then(|| model.url().to_owned());
        let settings = perihelion::config::Settings::load(Default::default(), None, &env).unwrap();
        let chat: Arc<dyn ChatModel> = Arc::new(OpenAiModel::new(&settings.models).unwrap());
        let asked = |state: &Draft| vec![ChatMessage::user(state.question.clone())];
        let line = |_: &Draft| Map::from_iter([("line".to_owned(), json!("note"))]);
        let agent = React::new(chat, Arc::clone(&tools), info);
        let graph = GraphBuilder::new("bench")
            .node(
                "agent",
                agent.node(asked, |answered| {
                    let calls = answered.calls.iter().map(|call| call.arguments.to_string());
                    DraftUpdate::new().lines(calls.chain([answered.text]).collect())
                }),
            )
            .node(
                "note",
                tool_call(Arc::clone(&tools), ("shop", "append"), line, |out| write(out.text)),
            )
            .entry("agent")
            .edge("agent", "note")
            .build()
            .unwrap();
        let runner = Runner::new(graph, Arc::new(MemoryStore::new()));
        Self { model, tools, runner, log, _directory: directory }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    async fn close(self) {
        self.tools.close().await;
        self.model.stop().await;
    }
}

/// X6 for graphs of one's own: rules that became stricter count, and a person's arguments are the ones that are sent.
#[tokio::test]
async fn calls_of_ready_nodes_wait_for_people_and_are_made_as_they_decide() {
    let script = Script::new().respond_with(|request| {
        Some(match request.tool_results() {
            0 => Reply::call("append", json!({ "line": "more" })),
            _ => Reply::text(request.last_text().to_owned()),
        })
    });
    let bench = Bench::open("tools.append.approval_mode = \"prompt\"", script).await;
    let thread = ThreadId::new();
    let input = DraftUpdate::new().question("Write.".into());
    let mut run = bench.runner.start(thread, input, RunOptions::default()).await.unwrap();
    for answer in [
        json!({ "decision": "approve", "arguments": { "line": "less" } }),
        json!({ "approved": false, "reason": "enough" }),
    ] {
        let RunResult::Interrupted(open) = &run.result else { panic!("{run:?}") };
        assert_eq!((&*open[0].kind, &open[0].payload["tool"]), ("approval", &json!("append")));
        bench.runner.answer(thread, open[0].id, &answer).await.unwrap();
        run = bench.runner.resume(thread, RunOptions::default()).await.unwrap();
    }
    assert_eq!(run.result, RunResult::Done);
    assert_eq!(bench.log(), "less\n");
    let lines: Vec<&str> = run.state.lines.iter().map(String::as_str).collect();
    let changed = "(a person changed the arguments to {\"line\":\"less\"})\nline 1";
    assert_eq!(lines, ["{\"line\":\"less\"}", changed, "a person denied this call: enough"]);
    bench.close().await;
}

/// S2.04 for graphs of one's own.
#[tokio::test]
async fn one_answer_with_too_many_calls_makes_as_many_as_are_left() {
    let script = Script::new().respond_with(|request| {
        let call =
            |reply: Reply, n: usize| reply.and_call("append", json!({ "line": n.to_string() }));
        Some(match request.tool_results() {
            0 => (0..30).fold(Reply::default(), call),
            results => Reply::text(format!("{results}: {}", request.last_text())),
        })
    });
    let bench = Bench::open("", script).await;
    let input = DraftUpdate::new().question("Write.".into());
    let done = bench.runner.start(ThreadId::new(), input, RunOptions::default()).await.unwrap();
    let answer = "30: not called: the limit of 25 tool calls was reached";
    assert_eq!((done.state.lines.len(), done.state.lines[25].as_str()), (27, answer));
    bench.close().await;
}
