//! Answers in JSON, held to their schema.

use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::llm::{Role, Usage, ask};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{model_at, request, serve};

/// A reflector's verdict, as the swarm asks for it.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Verdict {
    status: Status,
    feedback: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Status {
    Approved,
    Fixed,
    Rejected,
}

/// Shows S1.04: an answer in JSON is held to its schema, and a bad one is repaired.
#[tokio::test]
async fn a_bad_json_answer_is_asked_again_with_its_problems() {
    let script = Script::new()
        .rule(Rule::new(Reply::text("I approve.").usage(10, 1)).nth(1))
        .rule(
            Rule::new(Reply::json(json!({ "status": "MAYBE", "feedback": null })).usage(20, 2))
                .nth(2),
        )
        .rule(Rule::new(
            Reply::text("```json\n{\"status\":\"APPROVED\",\"feedback\":null}\n```").usage(30, 3),
        ));
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    let verdict = ask::<Verdict>(&model, request(Role::Reflector), "reflection").await.unwrap();
    assert_eq!(verdict.value, Verdict { status: Status::Approved, feedback: None });
    assert_eq!(verdict.attempts, 3);
    assert_eq!(verdict.usage, Usage { input_tokens: 60, output_tokens: 6, cached_tokens: 0 });

    let requests = server.requests();
    let format = &requests[0].body["response_format"];
    assert_eq!(format["type"], "json_schema");
    assert_eq!(format["json_schema"]["name"], "reflection");
    assert_eq!(format["json_schema"]["strict"], true);
    assert_eq!(format["json_schema"]["schema"]["required"], json!(["status", "feedback"]));
    assert_eq!(requests[1].texts()[2], "I approve.");
    assert!(requests[1].last_text().contains("the answer holds no JSON object"));
    assert!(requests[2].texts()[2].contains("MAYBE"), "the latest bad answer is shown");
    assert!(requests[2].last_text().contains("/status: "), "{}", requests[2].last_text());
    server.stop().await;
}

#[tokio::test]
async fn a_model_that_never_answers_validly_fails_after_three_attempts() {
    let server = serve(Script::new().rule(Rule::new(Reply::json(json!({ "status": 1 }))))).await;
    let model = model_at(server.url(), &[]);
    let error = ask::<Verdict>(&model, request(Role::Reflector), "reflection").await.unwrap_err();
    assert_eq!(server.requests().len(), 3);
    let text = error.to_string();
    assert!(
        text.starts_with("the reflector model did not answer with valid `reflection` JSON in 3")
    );
    assert!(text.contains("/status: 1 is not of type"), "{text}");
    server.stop().await;
}

/// Shows DESIGN 5: endpoints without `json_schema` are served by `json_object`, or by the prompt alone.
#[tokio::test]
async fn an_endpoint_that_refuses_json_schema_is_asked_in_a_simpler_form_from_then_on() {
    let refusal = |kind| {
        Rule::new(Reply::status(400, format!("response_format type {kind} is unavailable now")))
            .response_format(kind)
    };
    let good = || Rule::new(Reply::json(json!({ "status": "FIXED", "feedback": "x" })));
    let script = Script::new().rule(refusal("json_schema")).rule(good());
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    for _ in 0..2 {
        let verdict = ask::<Verdict>(&model, request(Role::Reflector), "reflection").await.unwrap();
        assert_eq!(verdict.attempts, 1);
    }
    let kinds: Vec<_> =
        server.requests().iter().map(|r| r.body["response_format"]["type"].clone()).collect();
    assert_eq!(kinds, ["json_schema", "json_object", "json_object"]);
    let system = server.requests()[1].texts()[0].to_owned();
    assert!(system.starts_with("Be brief.\n\n") && system.contains("\"required\":[\"status\""));
    server.stop().await;

    let script =
        Script::new().rule(refusal("json_schema")).rule(refusal("json_object")).rule(good());
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    ask::<Verdict>(&model, request(Role::Reflector), "reflection").await.unwrap();
    assert!(server.requests()[2].body.get("response_format").is_none());
    server.stop().await;
}

#[tokio::test]
async fn json_mode_json_object_never_tries_json_schema() {
    let reply = Reply::json(json!({ "status": "FIXED", "feedback": null }));
    let server = serve(Script::new().rule(Rule::new(reply))).await;
    let model = model_at(server.url(), &[("PERIHELION_MODELS_JSON_MODE", "json_object")]);
    ask::<Verdict>(&model, request(Role::Reflector), "reflection").await.unwrap();
    assert_eq!(server.requests()[0].body["response_format"], json!({ "type": "json_object" }));
    server.stop().await;
}

/// A cut answer that is shown again is repeated word for word, and cut again.
#[tokio::test]
async fn after_a_truncated_json_answer_a_shorter_one_is_requested_without_it() {
    let cut = json!({ "choices": [{
        "message": { "content": "{\"status\":\"APPROVED\",\"feedback\":\"and so on" },
        "finish_reason": "length",
    }] });
    let script = Script::new()
        .rule(Rule::new(Reply::raw(cut.to_string())).times(1))
        .rule(Rule::new(Reply::json(json!({ "status": "APPROVED" }))));
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    let verdict = ask::<Verdict>(&model, request(Role::Reflector), "reflection").await.unwrap();
    assert_eq!((verdict.value.status, verdict.attempts), (Status::Approved, 2));
    let second = &server.requests()[1];
    assert!(!second.contains("and so on") && !second.contains("\"properties\""));
    assert!(second.last_text().contains("cut off"), "{}", second.last_text());
    server.stop().await;
}

#[tokio::test]
async fn a_grammar_that_an_endpoint_cannot_make_steps_down_to_an_object_and_to_the_prompt() {
    let refuse = |status: u16, text: &str| Rule::new(Reply::status(status, text)).times(1);
    let script = Script::new()
        .rule(refuse(400, "failed to parse grammar"))
        .rule(refuse(500, "Failed to initialize samplers: failed to parse grammar"))
        .rule(Rule::new(Reply::json(json!({ "status": "FIXED" }))));
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    let verdict = ask::<Verdict>(&model, request(Role::Reflector), "reflection").await.unwrap();
    assert_eq!(verdict.value.status, Status::Fixed);
    let forms = server.requests();
    let forms: Vec<_> =
        forms.iter().map(|one| one.body["response_format"]["type"].clone()).collect();
    assert_eq!(forms, [json!("json_schema"), json!("json_object"), json!(null)]);
    server.stop().await;
}
