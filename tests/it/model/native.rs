//! Endpoints that do not speak Chat Completions: the same requests and answers over their own wires.

use perihelion::llm::scripted::{Reply, Rule, Script, ScriptedServer};
use perihelion::llm::{ChatMessage, ChatModel, OpenAiModel, Role, ToolSpec, Usage, ask};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{KEY, model_at, request, serve};
use crate::support::gateway::Gateway;

const APIS: [&str; 2] = ["anthropic", "gemini"];

async fn speaking(api: &str, server: &ScriptedServer) -> (OpenAiModel, Gateway) {
    let gateway = Gateway::before(server.url()).await;
    let env = [("PERIHELION_MODELS_API", api), ("PERIHELION_MODELS_TIMEOUT_SEC", "5")];
    (model_at(&gateway.url(api), &env), gateway)
}

fn reading() -> ToolSpec {
    ToolSpec {
        name: "read".into(),
        description: "Reads a file.".into(),
        parameters: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
    }
}

#[tokio::test]
async fn a_tool_loop_runs_over_each_wire_with_a_prefix_that_stays() {
    for api in APIS {
        let script = Script::new()
            .rule(Rule::new(Reply::text("It is 42.").usage(9, 3)).after_tool_results(2))
            .rule(Rule::new(
                Reply::text("I look.")
                    .and_call("read", json!({ "path": "a" }))
                    .and_call("read", json!({ "path": "b" }))
                    .usage(7, 2),
            ));
        let server = serve(script).await;
        let (model, gateway) = speaking(api, &server).await;
        let mut request = request(Role::Agent);
        request.tools = vec![reading()];
        let asked = model.chat(&request, None).await.unwrap();
        assert_eq!((asked.content.as_str(), asked.tool_calls.len()), ("I look.", 2), "{api}");
        assert_eq!(asked.tool_calls[1].arguments, json!({ "path": "b" }));
        assert_eq!(asked.finish_reason.as_deref(), Some("tool_calls"));
        assert_eq!(asked.usage, Usage { input_tokens: 7, output_tokens: 2, ..Usage::default() });

        let mut words = ChatMessage::assistant(asked.content);
        let ids: Vec<String> = asked.tool_calls.iter().map(|call| call.id.clone()).collect();
        words.tool_calls = asked.tool_calls;
        request.messages.push(words);
        request.messages.extend(ids.iter().map(|id| ChatMessage::tool(id, "42")));
        let answer = model.chat(&request, None).await.unwrap();
        assert_eq!(answer.content, "It is 42.", "{api}");
        let provider = if api == "gemini" { "gcp.gemini" } else { api };
        assert_eq!(answer.provider.as_deref(), Some(provider));

        // What was sent before is sent again as it was, which is what a provider's cache needs.
        let sent = gateway.sent();
        let turns = |body: &Value| -> Vec<Value> {
            let key = if api == "gemini" { "contents" } else { "messages" };
            let mut turns = body[key].as_array().unwrap().clone();
            for block in turns.iter_mut().flat_map(|turn| turn["content"].as_array_mut()).flatten()
            {
                block.as_object_mut().unwrap().remove("cache_control");
            }
            turns
        };
        let first = turns(&sent[0]);
        let second = turns(&sent[1]);
        assert_eq!(second[..first.len()], first, "{api}");
        assert_eq!(sent[0]["tools"], sent[1]["tools"], "{api}");
        server.stop().await;
    }
}

#[tokio::test]
async fn an_answer_is_streamed_over_each_wire() {
    const LONG: &str =
        "The orders of May were forty-two in all, and most came from one customer [1].";
    for api in APIS {
        let reply = Reply::text(LONG).and_call("read", json!({ "path": "a" })).usage(11, 22);
        let server = serve(Script::new().rule(Rule::new(reply))).await;
        let (model, _gateway) = speaking(api, &server).await;
        let mut pieces = Vec::new();
        let mut sink = |piece: &str| pieces.push(piece.to_owned());
        let answer = model.chat(&request(Role::Qa), Some(&mut sink)).await.unwrap();
        assert!(pieces.len() > 2, "{api}: {pieces:?}");
        assert_eq!((pieces.concat().as_str(), answer.content.as_str()), (LONG, LONG));
        assert_eq!(answer.tool_calls[0].arguments, json!({ "path": "a" }), "{api}");
        assert_eq!(
            answer.usage,
            Usage { input_tokens: 11, output_tokens: 22, ..Usage::default() },
            "{api}"
        );
        let headers = &server.requests()[0].headers;
        let key = if api == "gemini" { "x-goog-api-key" } else { "x-api-key" };
        assert_eq!(headers.get(key).map(String::as_str), Some(KEY));
        assert!(!headers.contains_key("authorization"));
        server.stop().await;
    }
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Verdict {
    approved: bool,
}

#[tokio::test]
async fn a_json_answer_is_checked_against_its_schema_and_repaired_with_each_api() {
    for api in APIS {
        let script = Script::new()
            .rule(Rule::new(Reply::json(json!({ "approved": "perhaps" }))).nth(1))
            .rule(Rule::new(Reply::json(json!({ "approved": true }))));
        let server = serve(script).await;
        let (model, gateway) = speaking(api, &server).await;
        let verdict = ask::<Verdict>(&model, request(Role::Reflector), "reflection").await.unwrap();
        assert_eq!((verdict.value, verdict.attempts), (Verdict { approved: true }, 2), "{api}");
        let sent = gateway.sent().remove(0);
        let schema = match api {
            "gemini" => &sent["generationConfig"]["responseJsonSchema"],
            _ => &sent["tools"][0]["input_schema"],
        };
        assert_eq!(schema["required"], json!(["approved"]), "{api}");
        server.stop().await;
    }
}

#[tokio::test]
async fn a_refusal_is_reported_in_the_endpoints_words_and_temporary_ones_are_retried() {
    for api in APIS {
        let script = Script::new()
            .rule(Rule::new(Reply::status(529, "Overloaded")).times(1))
            .rule(Rule::new(Reply::status(400, "no such model")));
        let server = serve(script).await;
        let (model, _gateway) = speaking(api, &server).await;
        let error = model.chat(&request(Role::Agent), None).await.unwrap_err().to_string();
        assert!(error.contains("status 400: no such model"), "{api}: {error}");
        assert!(!error.contains(KEY));
        assert_eq!(server.requests().len(), 2);
        server.stop().await;
    }
}
