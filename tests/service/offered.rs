//! Teams as the clients of every face find and use them: they come and go while the service runs (S1.10, X8).

use serde_json::{Value, json};

use super::face::keep_team;
use super::on_both;
use super::people::ask;
use super::served::Served;

on_both!(
    a_team_is_a_tool_for_as_long_as_it_is_kept,
    a_team_is_a_model_and_a_skill_for_as_long_as_it_is_kept,
);

async fn forget_team(served: &Served) {
    let gone = served.http.delete(format!("{}/v1/teams/keepers", served.url)).send().await.unwrap();
    assert_eq!(gone.status(), 204);
}

/// Returns the team that a thread's last turn was given to.
async fn team_of(served: &Served, thread: &Value) -> Value {
    let state = format!("/threads/{}/state", thread.as_str().unwrap());
    served.get(&state).await.1["values"]["preferences"]["team"].clone()
}

fn names(listed: &Value, name: &str) -> Vec<String> {
    let all = listed.as_array().unwrap_or_else(|| panic!("{listed}"));
    all.iter().map(|one| one[name].as_str().unwrap().to_owned()).collect()
}

/// S1.10, X8
async fn a_team_is_a_tool_for_as_long_as_it_is_kept(served: Served) {
    let listed = served.mcp("tools/list", json!({})).await;
    assert_eq!(names(&listed["tools"], "name"), ["swarm"]);
    let call = json!({ "question": "hello" });
    let refused = served.tool("team_keepers", call.clone()).await;
    assert_eq!(refused["code"], -32602, "{refused}");
    keep_team(&served).await;
    let listed = served.mcp("tools/list", json!({})).await;
    assert_eq!(names(&listed["tools"], "name"), ["swarm", "team_keepers"]);
    assert_eq!(listed["ttlMs"], 0, "the list is asked for again: {listed}");
    let [star, team] = &listed["tools"].as_array().unwrap()[..] else { panic!("{listed}") };
    assert_eq!(team["description"], "Keeps notes.");
    assert!(star["inputSchema"]["properties"]["team"].is_object(), "{star}");
    assert!(team["inputSchema"]["properties"]["team"].is_null(), "{team}");
    let reply = served.tool("team_keepers", call.clone()).await["structuredContent"].clone();
    assert_eq!(reply["answer"], "Hello from the star.", "{reply}");
    assert_eq!(team_of(&served, &reply["thread_id"]).await, "team_keepers");
    let reply = served.tool("swarm", call.clone()).await["structuredContent"].clone();
    assert_eq!(team_of(&served, &reply["thread_id"]).await, Value::Null);
    forget_team(&served).await;
    let listed = served.mcp("tools/list", json!({})).await;
    assert_eq!(names(&listed["tools"], "name"), ["swarm"]);
    assert_eq!(served.tool("team_keepers", call).await["code"], -32602);
}

/// S1.10, X8
async fn a_team_is_a_model_and_a_skill_for_as_long_as_it_is_kept(served: Served) {
    let skills = async || {
        let (_, card) = served.get("/.well-known/agent-card.json").await;
        names(&card["skills"], "id")
    };
    assert!(!skills().await.contains(&"team_keepers".to_owned()));
    assert_eq!(served.get("/v1/models/team_keepers").await.0, 404);
    keep_team(&served).await;
    assert!(skills().await.contains(&"team_keepers".to_owned()));
    let (_, models) = served.get("/v1/models").await;
    assert_eq!(names(&models["data"], "id"), ["swarm", "team_keepers"]);
    assert_eq!(served.get("/v1/models/team_keepers").await.0, 200);
    let messages = json!([{ "role": "user", "content": "hello" }]);
    let chat = json!({ "model": "team_keepers", "messages": messages });
    let (code, reply) = served.post("/v1/chat/completions", &chat).await;
    assert_eq!((code, &reply["model"]), (200, &json!("team_keepers")), "{reply}");
    assert_eq!(team_of(&served, &reply["metadata"]["thread_id"]).await, "team_keepers");
    let (code, reply) =
        served.post("/v1/responses", &json!({ "model": "team_keepers", "input": "hello" })).await;
    assert_eq!(code, 200, "{reply}");
    assert_eq!(team_of(&served, &reply["metadata"]["thread_id"]).await, "team_keepers");
    let message = json!({
        "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }], "metadata": { "team": "keepers" },
    });
    let (code, reply) = served.post("/a2a/message:send", &json!({ "message": message })).await;
    assert_eq!(code, 200, "{reply}");
    assert_eq!(team_of(&served, &reply["task"]["contextId"]).await, "team_keepers");
    forget_team(&served).await;
    let (code, reply) = served.post("/v1/chat/completions", &chat).await;
    assert_eq!(code, 404, "{reply}");
    assert!(
        reply["error"]["message"].as_str().unwrap().contains("Available models: swarm."),
        "{reply}"
    );
}

/// S2.12, S3.04: strangers read how to prove who they are, and who did reads what they may use.
#[tokio::test]
async fn the_agent_card_explains_how_to_authenticate() {
    let token = "a-token-of-many-letters";
    let extended = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard" });
    let served = Served::sqlite().await;
    let (_, open) = served.get("/.well-known/agent-card.json").await;
    assert!(names(&open["skills"], "id").contains(&"mcp_agent_notes".to_owned()), "{open}");
    assert!(open.get("securitySchemes").is_none(), "nobody has to prove anything: {open}");
    assert_eq!(served.post("/a2a", &extended).await.1["error"]["code"], -32004);

    let served = Served::with_token(token).await;
    let (code, card) = served.get("/.well-known/agent-card.json").await;
    assert_eq!(code, 200, "{card}");
    assert_eq!(
        names(&card["skills"], "id"),
        ["swarm"],
        "agents and teams are no stranger's affair"
    );
    let schemes = &card["securitySchemes"];
    let wanted = json!({ "location": "header", "name": "x-api-key" });
    assert_eq!(schemes["key"]["apiKeySecurityScheme"], wanted);
    assert_eq!(schemes["bearer"]["httpAuthSecurityScheme"]["scheme"], "Bearer");
    let required = card["securityRequirements"].as_array().unwrap();
    let required = required.iter().flat_map(|one| one["schemes"].as_object().unwrap().keys());
    assert_eq!(required.collect::<Vec<_>>(), ["key", "bearer"], "each is enough");
    assert_eq!(card["capabilities"]["extendedAgentCard"], true);

    let bearer = format!("Bearer {token}");
    for header in [("x-api-key", token), ("authorization", &bearer)] {
        let (_, reply) = ask(&served, "POST", "/a2a", &[header], Some(extended.clone())).await;
        let whole = &reply["result"];
        assert!(names(&whole["skills"], "id").contains(&"mcp_agent_notes".to_owned()), "{reply}");
        assert_eq!(whole["securitySchemes"], *schemes);
        let by_rest = ask(&served, "GET", "/a2a/extendedAgentCard", &[header], None).await;
        assert_eq!(by_rest, (200, whole.clone()));
    }
    assert_eq!(ask(&served, "GET", "/a2a/extendedAgentCard", &[], None).await.0, 401);
}
