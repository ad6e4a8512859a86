//! Answers in JSON, held to their schema.

use perihelion::llm::scripted::{RecordedRequest, Reply, Rule, Script};
use perihelion::llm::{
    ChatModel, ChatRequest, Manner, Role, ToolSpec, Usage, ask, ask_as, ask_checked, strict_schema,
    structured::ask_value,
};
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
    assert_eq!(verdict.usage, Usage { input_tokens: 60, output_tokens: 6, ..Usage::default() });

    let requests = server.requests();
    let format = &requests[0].body["response_format"];
    assert_eq!(format["type"], "json_schema");
    assert_eq!(format["json_schema"]["name"], "reflection");
    assert_eq!(format["json_schema"]["strict"], true);
    assert_eq!(format["json_schema"]["schema"]["required"], json!(["status", "feedback"]));
    assert_eq!(requests[1].texts()[2], "I approve.");
    assert!(requests[1].last_text().contains("the answer contains no JSON object"));
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

/// An answer that turns in circles is ended long before the model ends it.
#[tokio::test]
async fn an_answer_that_repeats_itself_is_ended_early_and_asked_for_again() {
    let circle = format!("{{\"status\":\"{}", "APPROVED and ".repeat(20_000));
    let cut =
        json!({ "choices": [{ "message": { "content": "{\"sta" }, "finish_reason": "length" }] });
    let script = Script::new()
        .rule(Rule::new(Reply::raw(cut.to_string())).times(1))
        .rule(Rule::new(Reply::text(&circle)).times(2))
        .rule(Rule::new(Reply::json(json!({ "status": "APPROVED" }))));
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    let watched = Manner { is_watched: true, ..Manner::default() };
    let error = ask::<Verdict>(&model, request(Role::Reflector), "reflection").await.unwrap_err();
    assert!(error.to_string().contains("the model repeated itself without end"), "{error}");
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(
        requests.iter().map(|one| one.is_streamed()).collect::<Vec<_>>(),
        [false, true, true],
        "what was cut once is watched"
    );
    assert!(!requests[2].contains("APPROVED and APPROVED"));
    let manners: Vec<_> = requests.iter().map(|one| one.body.get("temperature")).collect();
    assert_eq!(manners, [None, None, Some(&json!(0.2))], "a second failure changes something");
    server.stop().await;

    let server = serve(Script::new().rule(Rule::new(Reply::text(&circle)))).await;
    let model = model_at(server.url(), &[]);
    let asked = ChatRequest { manner: watched, ..request(Role::Agent) };
    let response = model.chat(&asked, None).await.unwrap();
    assert!(response.is_too_long() && response.cut().is_some(), "{:?}", response.finish_reason);
    assert!(response.content.len() < 10_000, "{}", response.content.len());
    server.stop().await;
}

/// A text that its bound ended may be a part of one, so a complete one is requested, in a tighter bound.
#[tokio::test]
async fn texts_are_bounded_by_the_output_limit_and_one_that_fills_its_bound_counts_as_cut_off() {
    let bound = |request: &RecordedRequest| {
        let schema = &request.body["response_format"]["json_schema"]["schema"];
        schema["properties"]["feedback"]["maxLength"].as_u64()
    };
    let is_long = move |request: &RecordedRequest| {
        let most = usize::try_from(bound(request).unwrap_or(90)).unwrap();
        let length = if request.contains("cut off") { most - 1 } else { most };
        Some(Reply::json(json!({ "status": "REJECTED", "feedback": "x".repeat(length) })))
    };
    let server = serve(Script::new().respond_with(is_long)).await;
    let narrow = [("PERIHELION_MODELS_MAX_TOKENS", "100")];
    let compact = [narrow[0], ("PERIHELION_MODELS_PROTOCOL", "compact")];
    for settings in [&narrow[..], &compact, &[]] {
        let model = model_at(server.url(), settings);
        ask::<Verdict>(&model, request(Role::Reflector), "reflection").await.unwrap();
    }
    let bounds: Vec<_> = server.requests().iter().map(bound).collect();
    let [Some(wide), Some(tight), Some(compact), Some(again), None] = *bounds else {
        panic!("{bounds:?}")
    };
    assert!(wide > compact && compact > tight && tight == again, "{bounds:?}");
    assert!((90..300).contains(&wide) && (40..100).contains(&tight), "{bounds:?}");
    server.stop().await;
}

/// A schema that the answer kept to is not explained again.
#[tokio::test]
async fn a_repair_repeats_the_schema_only_where_the_answer_broke_it() {
    let script = Script::new()
        .rule(Rule::new(Reply::json(json!({ "status": "FIXED", "feedback": null }))).times(1))
        .rule(Rule::new(Reply::json(json!({ "status": "APPROVED", "feedback": null }))));
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    let approved = |verdict: Verdict| match verdict.status {
        Status::Approved => Ok(verdict),
        _ => Err(vec!["nothing is to be fixed".to_owned()]),
    };
    ask_checked(&model, request(Role::Reflector), "reflection", approved).await.unwrap();
    let second = &server.requests()[1];
    assert!(second.last_text().contains("nothing is to be fixed"), "{}", second.last_text());
    assert!(!second.last_text().contains("\"properties\""), "{}", second.last_text());
    server.stop().await;
}

/// Bounds are for grammars; an endpoint that refuses them keeps the schema without them.
#[tokio::test]
async fn a_schema_whose_bounds_are_refused_is_sent_without_them_and_one_for_tools_in_plain_form() {
    let refusal = "Invalid schema for response_format 'n': 'maxLength' is not permitted.";
    let script = Script::new()
        .rule(Rule::new(Reply::status(400, refusal)).times(1))
        .rule(Rule::new(Reply::json(json!({ "status": "FIXED", "feedback": "x" }))));
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    let strict = (*strict_schema::<Verdict>()).clone();
    let mut sent = strict.clone();
    sent["properties"]["feedback"]["maxLength"] = json!(9);
    for _ in 0..2 {
        let asked = request(Role::Reflector);
        ask_as::<Verdict>(&model, asked, "reflection", &sent, &strict).await.unwrap();
    }
    let schemas = server.requests().into_iter();
    let schemas: Vec<_> =
        schemas.map(|one| one.body["response_format"]["json_schema"]["schema"].clone()).collect();
    assert_eq!(schemas, [sent, strict.clone(), strict]);
    server.stop().await;

    let script = Script::new()
        .rule(Rule::new(Reply::status(400, "failed to parse grammar")).times(1))
        .rule(Rule::new(Reply::text("done")));
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    let mut asked = request(Role::Agent);
    let place = json!({ "type": "string", "description": "Where.", "pattern": "^(a|b){1,9999}$" });
    let parameters = json!({
        "type": "object", "properties": { "place": place, "any": { "not": { "type": "null" } } },
        "required": ["place"],
    });
    asked.tools = vec![ToolSpec { name: "go".into(), description: "Goes.".into(), parameters }];
    model.chat(&asked, None).await.unwrap();
    let sent = &server.requests()[1].body["tools"][0]["function"]["parameters"];
    let plain = json!({
        "type": "object", "required": ["place"],
        "properties": { "place": { "type": "string", "description": "Where." }, "any": {} },
    });
    assert_eq!(*sent, plain);
    server.stop().await;
}

/// A caller's schema says nothing about ours: the endpoint refuses it, and is still asked strictly by every role.
#[tokio::test]
async fn a_refused_schema_of_a_caller_takes_no_form_away_from_others() {
    let refusal = "Invalid schema for response_format 'answer': 'additionalProperties' is required";
    let is_foreign = |request: &RecordedRequest| {
        let schema = &request.body["response_format"]["json_schema"]["schema"];
        schema["properties"].get("capital").is_some()
    };
    let script = Script::new().respond_with(move |request| {
        let good = json!({ "status": "FIXED", "feedback": null });
        Some(if is_foreign(request) { Reply::status(400, refusal) } else { Reply::json(good) })
    });
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    let schema = json!({ "type": "object", "properties": { "capital": { "type": "string" } } });
    ask_value(&model, request(Role::Qa), "answer", &schema).await.unwrap();
    ask_value(&model, request(Role::Qa), "answer", &json!({ "type": "object" })).await.unwrap();
    ask::<Verdict>(&model, request(Role::Reflector), "reflection").await.unwrap();
    let requests = server.requests();
    let kinds: Vec<_> =
        requests.iter().map(|one| one.body["response_format"]["type"].clone()).collect();
    assert_eq!(kinds, ["json_schema", "json_object", "json_object", "json_schema"]);
    server.stop().await;
}
