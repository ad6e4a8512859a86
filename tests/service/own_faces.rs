//! A program's own graphs in every API: as models, skills and tools, in every stream mode, and run by a worker (X11).

use std::path::Path;
use std::sync::Arc;

use perihelion::config::{Overrides, Settings};
use perihelion::graph::{GraphBuilder, Target, node_fn};
use perihelion::llm::ChatMessage;
use perihelion::llm::scripted::{Reply, Rule, Script, ScriptedModel};
use perihelion::nodes::model_call;
use perihelion::swarm::{Message, Messages, merge_messages};
use perihelion::{GraphParts, Graphs, OwnGraph, Serving};
use serde_json::{Value, json};

use super::on_both;
use super::served::Served;
use super::streams::events;

on_both!(
    a_graph_with_messages_is_a_model_a_skill_and_a_tool,
    a_graph_without_messages_is_a_tool_that_asks_and_is_answered,
    each_stream_mode_shows_the_state_of_any_graph,
    a_worker_of_the_same_program_continues_a_run_of_a_killed_service,
);

const WARM: &str = "It is warm in Padua.";

fn names(listed: &Value, name: &str) -> Vec<String> {
    let all = listed.as_array().unwrap_or_else(|| panic!("{listed}"));
    all.iter().map(|one| one[name].as_str().unwrap().to_owned()).collect()
}

async fn chat(stock: Served) -> Served {
    let script = Script::new().respond_with(|request| {
        Some(match request.tool_results() {
            0 => Reply::call("weather", json!({ "place": "Padua" })),
            _ => Reply::text(WARM),
        })
    });
    stock.of_example("chat", script).await
}

/// X11, X8
async fn a_graph_with_messages_is_a_model_a_skill_and_a_tool(stock: Served) {
    let served = chat(stock).await;
    let turns = async |thread: &Value| {
        let path = format!("/threads/{}/state", thread.as_str().unwrap());
        served.get(&path).await.1["values"]["messages"].as_array().unwrap().len()
    };
    let (_, models) = served.get("/v1/models").await;
    assert_eq!(names(&models["data"], "id"), ["swarm", "chat"]);
    let messages = json!([{ "role": "user", "content": "How is the weather?" }]);
    let ask = json!({ "model": "chat", "messages": messages });
    let (code, reply) = served.post("/v1/chat/completions", &ask).await;
    assert_eq!((code, &reply["model"]), (200, &json!("chat")), "{reply}");
    assert_eq!(reply["choices"][0]["message"]["content"], WARM);
    let ask = json!({ "model": "chat", "input": "How is the weather?" });
    let (_, reply) = served.post("/v1/responses", &ask).await;
    assert_eq!(reply["output"][0]["content"][0]["text"], WARM, "{reply}");
    let ask = json!({ "model": "chat", "input": "Still?", "previous_response_id": reply["id"] });
    let (_, reply) = served.post("/v1/responses", &ask).await;
    assert_eq!(turns(&reply["metadata"]["thread_id"]).await, 4, "{reply}");

    let (_, card) = served.get("/.well-known/agent-card.json").await;
    assert!(names(&card["skills"], "id").contains(&"chat".to_owned()), "{card}");
    let message = json!({
        "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "How is the weather?" }],
        "metadata": { "team": "chat" },
    });
    let (_, reply) = served.post("/a2a/message:send", &json!({ "message": message })).await;
    assert_eq!(reply["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{reply}");
    assert_eq!(turns(&reply["task"]["contextId"]).await, 2);

    let tool = served.tool("chat", json!({ "question": "How is the weather?" })).await;
    assert_eq!(tool["structuredContent"]["answer"], WARM, "{tool}");
    let thread = &tool["structuredContent"]["thread_id"];
    served.tool("chat", json!({ "question": "Still?", "thread_id": thread })).await;
    assert_eq!(turns(thread).await, 4);
}

/// X11, X8
async fn a_graph_without_messages_is_a_tool_that_asks_and_is_answered(stock: Served) {
    let served = stock.of_example("order", Script::new()).await;
    let (_, models) = served.get("/v1/models").await;
    assert_eq!(names(&models["data"], "id"), ["swarm"]);
    let listed = served.mcp("tools/list", json!({})).await;
    assert_eq!(names(&listed["tools"], "name"), ["swarm", "order"]);
    let order = &listed["tools"][1];
    assert_eq!(order["description"], "Orders one thing and pays for it");
    assert_eq!(order["inputSchema"]["properties"]["cents"]["type"], "integer", "{order}");
    let asked = served.tool("order", json!({ "item": "a globe", "cents": 25_000 })).await;
    let asked = &asked["structuredContent"];
    assert_eq!(asked["status"], "interrupted", "{asked}");
    let answer = json!({ "thread_id": asked["thread_id"], "answer": "approve" });
    let done = served.tool("order", answer).await["structuredContent"].clone();
    assert_eq!(done["status"], "done", "{done}");
    assert_eq!(done["values"]["log"], json!(["a globe for 25000 cents", "approved", "paid"]));
    let refused = served.tool("order", json!({ "item": 7 })).await;
    assert_eq!(refused["isError"], true, "{refused}");
}

/// X11, X1
async fn each_stream_mode_shows_the_state_of_any_graph(stock: Served) {
    let served = stock.of_example("order", Script::new()).await;
    let input = json!({ "item": "a globe", "cents": 5 });
    let log = json!(["a globe for 5 cents", "paid"]);
    for mode in ["values", "updates", "custom", "tasks", "checkpoints", "debug"] {
        let body = json!({ "assistant_id": "order", "input": input, "stream_mode": mode });
        let all = events(&served, "/runs/stream", &body).await;
        let sent: Vec<&Value> =
            all.iter().filter(|event| event.name == mode).map(|event| &event.data).collect();
        let (Some(first), Some(last)) = (sent.first(), sent.last()) else { panic!("{all:#?}") };
        match mode {
            "values" => assert_eq!((&first["item"], &last["log"]), (&json!("a globe"), &log)),
            "updates" => assert_eq!(last["pay"]["log"], json!(["paid"]), "{last}"),
            "custom" => assert_eq!(sent, [&json!({ "message": "checking the price" })]),
            "tasks" => {
                assert_eq!((&first["name"], &last["name"]), (&json!("check"), &json!("pay")))
            }
            "checkpoints" => assert_eq!(last["values"]["log"], log, "{last}"),
            _ => assert!(sent.iter().any(|one| one["type"] == "task_result"), "{sent:#?}"),
        }
    }
    let served = chat(served).await;
    let input = json!({ "messages": [{ "role": "user", "content": "How is the weather?" }] });
    let body = json!({ "assistant_id": "chat", "input": input, "stream_mode": "messages-tuple" });
    let all = events(&served, "/runs/stream", &body).await;
    let pieces = all.iter().filter(|event| event.name == "messages");
    let text: String = pieces.filter_map(|event| event.data[0]["content"].as_str()).collect();
    assert_eq!(text, WARM, "{all:#?}");
}

/// X11, X5
async fn a_worker_of_the_same_program_continues_a_run_of_a_killed_service(stock: Served) {
    let script = Script::new()
        .rule(Rule::new(Reply::hang()).times(1))
        .rule(Rule::new(Reply::text("It moves.")));
    let mut served = stock.of_example("research", script).await;
    let thread = served.thread().await;
    let path = format!("/threads/{thread}/runs");
    let input = json!({ "topic": "earth", "sources": ["Bruno", "Kepler"] });
    let body = json!({ "assistant_id": "research", "input": input });
    served.post(&format!("{path}/wait"), &body).await;
    let resume = json!({ "assistant_id": "research", "command": { "resume": "short" } });
    let (_, run) = served.post(&path, &resume).await;
    served.model.wait_for_requests(1).await;
    served.crash().await;
    served.program(&["worker", "--drain"]).await;
    let state = served.program(&["threads", "state", &thread]).await;
    let state: Value = serde_json::from_str(&state).unwrap();
    assert_eq!(state["state"]["report"], "It moves.", "{state}");
    served.start_again().await;
    let id = run["run_id"].as_str().unwrap();
    let (_, done) = served.get(&format!("{path}/{id}/join")).await;
    assert_eq!(
        (&done["report"], served.model.requests().len()),
        (&json!("It moves."), 2),
        "{done}"
    );
}

perihelion::graph_state! {
    pub struct Talk, update TalkUpdate, version 1 {
        messages: Messages => with(merge_messages),
    }
}

/// Serves a graph in this process.
async fn serving(home: &Path, model: &str, graph: OwnGraph<Talk>) -> Serving {
    let overrides = Overrides {
        addr: Some("127.0.0.1:0".into()),
        database: Some(format!("sqlite:{}", home.join("t.db").display())),
        servers: Some(home.join("servers.toml")),
        model_url: Some(model.into()),
        model: Some("scripted".into()),
        ..Overrides::default()
    };
    std::fs::write(home.join("servers.toml"), "").unwrap();
    let settings = Settings::load(overrides, None, &|_: &str| None).unwrap();
    perihelion::serve(Graphs::new().with(graph), settings).await.unwrap()
}

/// Makes a graph in which two nodes stream a message each: at once, or one after the other.
fn talking(at_once: bool) -> OwnGraph<Talk> {
    OwnGraph::built("talk", move |parts: &GraphParts| {
        let says = |topic: &'static str| {
            let prompt = move |_: &Talk| vec![ChatMessage::user(topic)];
            model_call(Arc::clone(&parts.model), prompt, move |answer| {
                let id = topic.to_owned();
                let role = "assistant".to_owned();
                let message = Message { id, role, content: answer.content, ..Message::default() };
                TalkUpdate::new().messages([message].into_iter().collect())
            })
        };
        let graph = GraphBuilder::new("talk")
            .node("begin", node_fn(async |_| Ok(TalkUpdate::new().into())))
            .node("look", says("weather"))
            .node("advise", says("advice"))
            .entry("begin");
        if at_once {
            let both = |_: &Talk| vec![Target::node("look"), Target::node("advise")];
            graph.route("begin", both).build()
        } else {
            graph.edge("begin", "look").edge("look", "advise").build()
        }
    })
}

/// Tasks of one step.
const WIDE: usize = 600;

/// X5: the numbers of events rise, however many tasks a step has, so that a client misses nothing that continues after one.
#[tokio::test]
async fn the_events_of_a_wide_step_are_numbered_in_their_order() {
    perihelion::config::tls::install();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let home = tempfile::tempdir().unwrap();
    let wide = OwnGraph::built("wide", |_: &GraphParts| {
        GraphBuilder::new("wide")
            .node("begin", node_fn(async |_| Ok(TalkUpdate::new().into())))
            .node("one", node_fn(async |_| Ok(TalkUpdate::new().into())))
            .node("end", node_fn(async |_| Ok(TalkUpdate::new().into())))
            .entry("begin")
            .route("begin", |_: &Talk| {
                (0..WIDE).map(|number| Target::send("one", json!(number))).collect()
            })
            .edge("one", "end")
            .build()
    });
    let served = serving(home.path(), "http://127.0.0.1:9", wide).await;
    let thread = uuid::Uuid::now_v7();
    let post = async |path: &str, body: Value| {
        let asked = http.post(format!("{}/threads/{thread}{path}", served.url()));
        let asked = asked.header("content-type", "application/json").body(body.to_string());
        asked.send().await.unwrap()
    };
    let input = json!({ "assistant_id": "wide", "input": { "messages": [] } });
    let start = json!({ "id": 1, "method": "run.start", "params": input });
    assert_eq!(post("/commands", start).await.status(), 200);
    let channels =
        json!({ "channels": ["values", "updates", "tasks", "checkpoints", "lifecycle"] });
    let mut stream = post("/stream/events", channels).await;
    let mut text = String::new();
    while !(text.contains("\"completed\"") && text.ends_with("\n\n")) {
        text.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
    }
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    let seqs: Vec<u64> = ids.map(|id| id.parse().unwrap()).collect();
    // A stream that is opened late misses the beginning of some tasks, and none of their results.
    assert!(seqs.len() > 2 * WIDE, "{}", seqs.len());
    assert!(seqs.is_sorted_by(|one, next| one < next), "{seqs:?}");
    served.stop().await.unwrap();
}

/// X8: no client is streamed a message without its beginning, or two mixed.
#[tokio::test]
async fn messages_of_several_nodes_are_streamed_whole_and_the_last_is_the_answer() {
    perihelion::config::tls::install();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for at_once in [false, true] {
        let script = Script::new().respond_with(|asked| {
            let says_weather = asked.contains("weather");
            Some(Reply::text(if says_weather { "It rains here." } else { "Take an umbrella." }))
        });
        let model = ScriptedModel::start(script).await.unwrap();
        let home = tempfile::tempdir().unwrap();
        let served = serving(home.path(), model.url(), talking(at_once)).await;
        let streamed = async |path: &str, body: Value| -> Vec<Value> {
            let asked = http.post(format!("{}{path}", served.url())).header("a2a-version", "1.0");
            let asked = asked.header("content-type", "application/json").body(body.to_string());
            let text = asked.send().await.unwrap().text().await.unwrap();
            let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
            lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
        };
        let messages = json!([{ "role": "user", "content": "How is the weather?" }]);
        let chat = json!({ "model": "talk", "messages": messages, "stream": true });
        let events = streamed("/v1/chat/completions", chat).await;
        let pieces = events.iter().filter_map(|one| one["choices"][0]["delta"]["content"].as_str());
        let text: String = pieces.collect();
        let both = "It rains here.\n\nTake an umbrella.";
        assert!(text == both || at_once && text == "Take an umbrella.", "{text:?}");
        let message = json!({
            "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "How is the weather?" }],
            "metadata": { "team": "talk" },
        });
        let events = streamed("/a2a/message:stream", json!({ "message": message })).await;
        let mut artifact = String::new();
        for update in events.iter().map(|one| &one["artifactUpdate"]).filter(|one| one.is_object())
        {
            if update["append"] == false {
                artifact.clear();
            }
            artifact.push_str(update["artifact"]["parts"][0]["text"].as_str().unwrap());
        }
        assert_eq!(artifact, "Take an umbrella.", "{events:#?}");
        served.stop().await.unwrap();
        model.stop().await;
    }
}
