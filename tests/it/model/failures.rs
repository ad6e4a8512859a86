//! What goes wrong, what is tried again, and what is told.

use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::llm::{ChatModel, Error, Role};
use serde_json::json;

use super::{KEY, answer_to, model_at, request, serve};

#[tokio::test]
async fn rate_limits_and_server_errors_are_retried() {
    let script = Script::new()
        .rule(Rule::new(Reply::status(429, "slow down").header("retry-after", "0")).times(1))
        .rule(Rule::new(Reply { status: Some(500), ..Reply::raw("<html>oops</html>") }).times(1))
        .rule(Rule::new(Reply::text("at last")));
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    assert_eq!(model.chat(&request(Role::Agent), None).await.unwrap().content, "at last");
    assert_eq!(server.requests().len(), 3);
    server.stop().await;
}

#[tokio::test]
async fn a_retry_after_in_the_far_future_is_capped() {
    let script = Script::new()
        .rule(
            Rule::new(
                Reply::status(429, "slow down")
                    .header("retry-after", "Sun, 21 Oct 2198 07:28:00 GMT"),
            )
            .times(1),
        )
        .rule(Rule::new(Reply::status(503, "busy").header("retry-after", "86400")).times(1))
        .rule(Rule::new(Reply::text("at last")));
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    assert_eq!(model.chat(&request(Role::Agent), None).await.unwrap().content, "at last");
    server.stop().await;
}

#[tokio::test]
async fn retries_end_and_permanent_failures_are_not_retried() {
    for (reply, requests) in [
        (Reply::status(503, "overloaded"), 3),
        (Reply::status(429, "You exceeded your current quota"), 1),
        (Reply::status(401, "no such key"), 1),
        // What servers on the user's own machine answer, which no wait fixes.
        (Reply::status(500, "tools param requires --jinja flag"), 1),
        (
            Reply::status(
                500,
                "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            ),
            1,
        ),
        (
            Reply::status(
                500,
                "model requires more system memory (5.6 GiB) than is available (3.1 GiB)",
            ),
            1,
        ),
        (Reply::status(501, "This server does not support this operation."), 1),
        // It would be asked once more with less, if there were less.
        (Reply::status(400, "context length exceeded"), 1),
        (Reply::status(400, "no such parameter"), 1),
        (Reply::status(302, "").header("location", "http://127.0.0.1:1/"), 1),
    ] {
        let status = reply.status.unwrap();
        let server = serve(Script::new().rule(Rule::new(reply))).await;
        let model = model_at(server.url(), &[]);
        let error = model.chat(&request(Role::Agent), None).await.unwrap_err();
        assert!(matches!(error, Error::Refused { status: s, .. } if s == status), "{error}");
        assert_eq!(server.requests().len(), requests, "{status}");
        server.stop().await;
    }
}

#[tokio::test]
async fn a_dropped_connection_is_retried_and_then_reported() {
    let script = Script::new()
        .rule(Rule::new(Reply::drop_connection()).times(1))
        .rule(Rule::new(Reply::text("back")));
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    assert_eq!(model.chat(&request(Role::Agent), None).await.unwrap().content, "back");
    let url = server.url().to_owned();
    server.stop().await;

    let error = model.chat(&request(Role::Agent), None).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot reach the model endpoint {url}: ")), "{error}");
    assert!(error.contains("refused") && error.contains("OPENAI_BASE_URL"), "{error}");
}

#[tokio::test]
async fn a_hanging_endpoint_is_retried_and_then_reported_by_name() {
    let script = Script::new()
        .rule(Rule::new(Reply::hang()).role(Role::Agent).times(1))
        .rule(Rule::new(Reply::hang()).role(Role::Qa))
        .rule(Rule::new(Reply::text("awake")));
    let server = serve(script).await;
    let hasty = ("PERIHELION_MODELS_TIMEOUT_SEC", "0.2");
    let model = model_at(server.url(), &[hasty, ("PERIHELION_MODELS_MAX_RETRIES", "9")]);
    assert_eq!(model.chat(&request(Role::Agent), None).await.unwrap().content, "awake");

    let model = model_at(server.url(), &[hasty, ("PERIHELION_MODELS_MAX_RETRIES", "0")]);
    let expected = format!("the model endpoint {} did not answer within 0.2 s", server.url());
    let error = model.chat(&request(Role::Qa), None).await.unwrap_err().to_string();
    assert!(error.starts_with(&expected), "{error}");
    let mut sink = |_: &str| {};
    let error = model.chat(&request(Role::Qa), Some(&mut sink)).await.unwrap_err().to_string();
    assert!(error.starts_with(&expected), "{error}");
    server.stop().await;
}

#[tokio::test]
async fn refusals_of_any_form_are_reported_in_one_short_line() {
    let long = "many words ".repeat(10_000);
    for (body, shown) in [
        (r#"{"error":"plain"}"#, "plain"),
        (r#"{"detail":"from a gateway"}"#, "from a gateway"),
        (r#"{"error":{"message":"numbered","code":1234567}}"#, "numbered"),
        ("not json\nat all", "not json at all"),
        (long.as_str(), "many words"),
        ("", "(no message)"),
    ] {
        let error = answer_to(Reply { status: Some(422), ..Reply::raw(body) }).await.unwrap_err();
        let error_text = error.to_string();
        let message = error_text.split("status 422: ").nth(1).unwrap_or_default();
        assert!(message.starts_with(shown) && message.len() < 500, "{error_text}");
    }
}

#[tokio::test]
async fn the_api_key_shows_in_no_error() {
    let echo = format!("Incorrect API key provided: {KEY}. Bearer {KEY}");
    for reply in [
        Reply::status(401, echo.clone()),
        Reply { status: Some(500), ..Reply::raw(echo.clone()) },
        Reply::raw(echo.clone()),
        // Where an error is cut to its length, the key may not be cut with it.
        Reply::raw(format!("{} {KEY}", "x".repeat(340))),
        Reply::raw(json!({ "error": { "message": echo } }).to_string()),
        Reply::raw(json!({ "choices": [{ "text": echo }] }).to_string()),
        Reply::drop_connection(),
    ] {
        let error = answer_to(reply).await.unwrap_err();
        let error_text = format!("{error} {error:?}");
        assert!(!error_text.contains(&KEY[..9]), "{error_text}");
    }
}
