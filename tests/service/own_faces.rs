//! A program's own graphs in every API: as models, skills and tools, in every stream mode, and run by a worker (X11).

use perihelion::llm::scripted::{Reply, Rule, Script};
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
