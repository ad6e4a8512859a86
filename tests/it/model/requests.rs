//! What a request carries.

use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::llm::{ChatMessage, ChatModel, Error, Role, ToolSpec, Usage};
use serde_json::{Value, json};

use super::{KEY, model_at, request, serve};

/// Shows the contract of DESIGN 5: role, thread and agent stand in headers.
#[tokio::test]
async fn every_request_names_its_role_thread_and_agent_in_headers() {
    let server = serve(Script::new().rule(Rule::new(Reply::text("Hi")))).await;
    let model = model_at(server.url(), &[]);
    let mut asked = request(Role::Agent);
    asked.agent = Some("mcp_agent_größe".into());
    model.chat(&asked, None).await.unwrap();
    model.chat(&request(Role::Supervisor), None).await.unwrap();

    let requests = server.requests();
    assert_eq!(requests[0].role, "agent");
    assert_eq!(requests[0].thread, asked.thread);
    assert_eq!(requests[0].agent.as_deref(), Some("mcp_agent_gr%C3%B6%C3%9Fe"));
    assert_eq!(requests[0].headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!((requests[1].role.as_str(), &requests[1].agent), ("supervisor", &None));
    server.stop().await;
}

#[tokio::test]
async fn a_role_gets_its_own_model_endpoint_key_and_limits() {
    let main = serve(Script::new().rule(Rule::new(Reply::text("main")))).await;
    let other = serve(Script::new().rule(Rule::new(Reply::text("other")))).await;
    let model = model_at(
        main.url(),
        &[
            ("PERIHELION_MODELS_ROLES_REFLECTOR_MODEL", "small"),
            ("PERIHELION_MODELS_ROLES_REFLECTOR_TEMPERATURE", "0"),
            ("PERIHELION_MODELS_ROLES_REFLECTOR_MAX_TOKENS", "99"),
            ("PERIHELION_MODELS_ROLES_QA_URL", other.url()),
        ],
    );
    assert_eq!(model.chat(&request(Role::Reflector), None).await.unwrap().content, "main");
    assert_eq!(model.chat(&request(Role::Agent), None).await.unwrap().content, "main");
    assert_eq!(model.chat(&request(Role::Qa), None).await.unwrap().content, "other");

    let requests = main.requests();
    let reflector = &requests[0];
    let agent = &requests[1];
    assert_eq!(reflector.body["model"], "small");
    assert_eq!(reflector.body["temperature"], 0.0);
    assert_eq!(reflector.body["max_tokens"], 99);
    assert_eq!(agent.body["model"], "big");
    assert!(agent.body.get("temperature").is_none());
    assert!(!other.requests()[0].headers.contains_key("authorization"));
    main.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn the_error_without_an_endpoint_names_the_setting() {
    let model = model_at("", &[("OPENAI_API_KEY", "")]);
    let error = model.chat(&request(Role::Qa), None).await.unwrap_err();
    assert!(matches!(error, Error::NotConfigured), "{error}");
    assert!(error.to_string().contains("OPENAI_BASE_URL"));
}

#[tokio::test]
async fn tools_and_their_results_travel_in_the_usual_form() {
    let script = Script::new()
        .rule(
            Rule::new(Reply::call("read", json!({ "path": "a" })).and_call("list", Value::Null))
                .after_tool_results(0),
        )
        .rule(Rule::new(Reply::text("done").usage(7, 3)).after_tool_results(2));
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    let mut asked = request(Role::Agent);
    asked.tools = vec![ToolSpec {
        name: "read".into(),
        description: "Reads.".into(),
        parameters: json!({ "type": "object" }),
    }];
    let first = model.chat(&asked, None).await.unwrap();
    assert_eq!(first.finish_reason.as_deref(), Some("tool_calls"));
    let calls: Vec<_> = first.tool_calls.iter().map(|c| (c.name.as_str(), &c.arguments)).collect();
    assert_eq!(calls, [("read", &json!({ "path": "a" })), ("list", &json!({}))]);

    let mut words = ChatMessage::assistant("");
    words.tool_calls = first.tool_calls.clone();
    asked.messages.push(words);
    for call in &first.tool_calls {
        asked.messages.push(ChatMessage::tool(&call.id, "result"));
    }
    let second = model.chat(&asked, None).await.unwrap();
    assert_eq!(second.content, "done");
    assert_eq!(second.usage, Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() });

    let body = &server.requests()[1].body;
    assert_eq!(body["tools"][0]["function"]["name"], "read");
    assert_eq!(body["messages"][2]["content"], Value::Null);
    assert_eq!(body["messages"][2]["tool_calls"][0]["function"]["arguments"], r#"{"path":"a"}"#);
    assert_eq!(body["messages"][3]["tool_call_id"], first.tool_calls[0].id.as_str());
    server.stop().await;
}

#[tokio::test]
async fn an_endpoint_that_wants_max_completion_tokens_gets_it() {
    let script = Script::new()
        .rule(
            Rule::new(Reply::status(
                400,
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            ))
            .times(1),
        )
        .rule(
            Rule::new(Reply::status(400, "Unsupported value: 'temperature' does not support 0.5."))
                .times(1),
        )
        .rule(Rule::new(Reply::text("ok")));
    let server = serve(script).await;
    let model = model_at(
        server.url(),
        &[("PERIHELION_MODELS_MAX_TOKENS", "50"), ("PERIHELION_MODELS_TEMPERATURE", "0.5")],
    );
    model.chat(&request(Role::Agent), None).await.unwrap();
    let last = server.requests()[2].body.clone();
    assert_eq!(last["max_completion_tokens"], 50);
    assert!(last.get("max_tokens").is_none() && last.get("temperature").is_none());
    server.stop().await;
}
