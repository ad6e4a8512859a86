//! Streamed answers.

use perihelion::llm::scripted::{Reply, Rule, Script, ScriptedServer};
use perihelion::llm::{ChatModel, ChatResponse, Error, Role, Usage};
use serde_json::json;

use super::{model_at, request, serve};

async fn streamed(server: &ScriptedServer) -> (Vec<String>, Result<ChatResponse, Error>) {
    let model = model_at(server.url(), &[("PERIHELION_MODELS_TIMEOUT_SEC", "5")]);
    let mut pieces = Vec::new();
    let answer = {
        let mut sink = |piece: &str| pieces.push(piece.to_owned());
        model.chat(&request(Role::Qa), Some(&mut sink)).await
    };
    (pieces, answer)
}

const LONG: &str =
    "The orders of May were forty-two in all, and most of them came from one customer [1].";

#[tokio::test]
async fn a_streamed_answer_arrives_in_pieces_with_its_usage() {
    let server = serve(Script::new().rule(Rule::new(Reply::text(LONG).usage(11, 22)))).await;
    let (pieces, answer) = streamed(&server).await;
    let answer = answer.unwrap();
    assert!(pieces.len() > 2);
    assert_eq!((pieces.concat().as_str(), answer.content.as_str()), (LONG, LONG));
    assert_eq!(answer.usage, Usage { input_tokens: 11, output_tokens: 22, ..Usage::default() });
    assert_eq!(answer.finish_reason.as_deref(), Some("stop"));
    let body = &server.requests()[0].body;
    assert_eq!(
        (&body["stream"], &body["stream_options"]["include_usage"]),
        (&json!(true), &json!(true))
    );
    server.stop().await;
}

#[tokio::test]
async fn an_endpoint_that_ignores_streaming_or_usage_still_answers() {
    let mut whole = Reply::text(LONG);
    whole.ignore_stream = true;
    let server = serve(Script::new().rule(Rule::new(whole))).await;
    let (pieces, answer) = streamed(&server).await;
    assert_eq!((pieces.concat().as_str(), answer.unwrap().content.as_str()), (LONG, LONG));
    server.stop().await;

    let mut without = Reply::text(LONG);
    without.without_usage = true;
    let server = serve(Script::new().rule(Rule::new(without))).await;
    let (_, answer) = streamed(&server).await;
    let usage = answer.unwrap().usage;
    assert!(usage.estimated && usage.input_tokens > 0 && usage.output_tokens > 0, "{usage:?}");
    server.stop().await;

    let script = Script::new()
        .rule(Rule::new(Reply::status(400, "unknown field: stream_options")).times(1))
        .rule(Rule::new(Reply::text(LONG)));
    let server = serve(script).await;
    let (_, answer) = streamed(&server).await;
    assert_eq!(answer.unwrap().content, LONG);
    assert!(server.requests()[1].body.get("stream_options").is_none());
    server.stop().await;
}

#[tokio::test]
async fn a_broken_stream_restarts_only_before_its_first_output() {
    let mut broken = Reply::text(LONG);
    broken.drop_connection = true;
    let server = serve(Script::new().rule(Rule::new(broken))).await;
    let (pieces, answer) = streamed(&server).await;
    assert!(!pieces.is_empty() && LONG.starts_with(&pieces.concat()));
    assert!(matches!(answer, Err(Error::Unreachable { .. })), "{answer:?}");
    assert_eq!(server.requests().len(), 1);
    server.stop().await;

    let script = Script::new()
        .rule(Rule::new(Reply::status(503, "busy")).times(1))
        .rule(Rule::new(Reply::raw("data: [DONE]\n\n")).times(1))
        .rule(Rule::new(Reply::text(LONG)));
    let server = serve(script).await;
    let (pieces, answer) = streamed(&server).await;
    assert_eq!((pieces.concat().as_str(), answer.unwrap().content.as_str()), (LONG, LONG));
    assert_eq!(server.requests().len(), 3);
    server.stop().await;
}

#[tokio::test]
async fn an_error_during_a_stream_is_reported() {
    let raw = format!(
        "data: {}\n\ndata: {{\"error\":{{\"message\":\"upstream is gone\",\"code\":502}}}}\n\n",
        json!({ "choices": [{ "delta": { "content": LONG } }] })
    );
    let server = serve(Script::new().rule(Rule::new(Reply::raw(raw)))).await;
    let (pieces, answer) = streamed(&server).await;
    assert_eq!(pieces, [LONG]);
    let text = answer.unwrap_err().to_string();
    assert!(text.ends_with("refused the request with status 502: upstream is gone"), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn a_stream_is_read_in_every_event_format() {
    let chunk =
        |delta: &str| format!("{{\"choices\":[{{\"delta\":{{\"content\":\"{delta}\"}}}}]}}");
    let end = "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}";
    for (raw, text) in [
        (format!("\u{feff}data: {}\n\ndata: {end}\n\n", chunk("with a mark")), "with a mark"),
        (format!("data: {}\r\n\r\ndata: {end}\r\n\r\n", chunk("crlf")), "crlf"),
        (format!("data: {}\r\rdata: {end}\r\r", chunk("cr")), "cr"),
        (
            format!(
                "data:{}\n: ping\nid: 1\nshoesize: 43\nretry\n\ndata:{end}",
                chunk("odd fields")
            ),
            "odd fields",
        ),
        (format!("data: {}\n\ndata: [DONE]", chunk("no last line")), "no last line"),
        (format!("data: \n\ndata: {}\n\ndata:\n\ndata: {end}\n\n", chunk("empty")), "empty"),
        (format!("{}\n{end}\n", chunk("bare lines")), "bare lines"),
        (
            "data: {\"choices\":[{\"text\":\"alone\",\"finish_reason\":\"stop\"}]}\n\n".into(),
            "alone",
        ),
        (
            format!(
                "data: {}\n\ndata: {}\n\ndata: {end}\n\n",
                chunk("a \\ud83d"),
                chunk("\\ude00 b")
            ),
            "a \u{1f600} b",
        ),
        (
            format!("data: {}\n\ndata: {end}\n\n", chunk("lone \\ud83d! \\ude00.")),
            "lone \u{fffd}! \u{fffd}.",
        ),
    ] {
        let reply = Reply::raw(raw.clone()).header("content-type", "text/event-stream");
        let server = serve(Script::new().rule(Rule::new(reply))).await;
        let (pieces, answer) = streamed(&server).await;
        assert_eq!(answer.unwrap().content, text, "{raw}");
        assert_eq!(pieces.concat(), text, "{raw}");
        server.stop().await;
    }
}

#[tokio::test]
async fn an_endpoint_that_always_streams_still_answers() {
    let event = |choice: serde_json::Value| format!("data: {}\n\n", json!({ "choices": [choice] }));
    let pieces =
        [json!({ "delta": { "content": "It was " } }), json!({ "delta": { "content": "5." } })];
    let end = json!({ "delta": {}, "finish_reason": "stop" });
    let raw: String = pieces.into_iter().chain([end]).map(event).collect();
    let reply = Reply::raw(raw).header("content-type", "text/event-stream");
    let server = serve(Script::new().rule(Rule::new(reply))).await;
    let model = model_at(server.url(), &[]);
    let answer = model.chat(&request(Role::Qa), None).await.unwrap();
    assert_eq!(
        (answer.content.as_str(), &server.requests()[0].body["stream"]),
        ("It was 5.", &json!(false))
    );
    server.stop().await;
}

/// The answer was shown in part, so it is not begun again.
#[tokio::test]
async fn a_stream_that_ends_before_the_answer_does_is_given_as_cut() {
    let raw = format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": LONG } }] }));
    let server = serve(Script::new().rule(Rule::new(Reply::raw(raw)))).await;
    let (pieces, answer) = streamed(&server).await;
    let answer = answer.unwrap();
    assert_eq!((pieces.concat().as_str(), answer.content.as_str()), (LONG, LONG));
    assert!(answer.cut().is_some());
    assert_eq!(server.requests().len(), 1);
    server.stop().await;
}
