//! Credentials that end while something is open by them, and tokens that nobody issued.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use ring::hmac;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, client::IntoClientRequest as _};

use crate::issuer::{Issuer, claims, header, signed};
use crate::people::{ask, id, key};
use crate::served::Served;
use crate::{on_both, saying};

on_both!(
    a_revoked_key_ends_what_is_open_by_it_on_every_face,
    a_disabled_user_s_threads_and_streams_end,
);

/// How long something may take that is to happen at all.
const PATIENCE: Duration = Duration::from_secs(60);

type Socket =
    tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

/// What is open by a credential.
struct Open {
    streams: Vec<(String, reqwest::Response)>,
    socket: Socket,
}

/// Opens a stream of every face, each of which waits for a model that does not answer or for another run.
async fn open(served: &Served, name: &'static str, secret: &str) -> Open {
    let who = [(name, secret)];
    let thread = id(&ask(served, "POST", "/threads", &who, Some(json!({}))).await);
    let mut later = saying("hello");
    later["after_seconds"] = json!(3_600);
    let runs = format!("/threads/{thread}/runs");
    let (_, run) = ask(served, "POST", &runs, &who, Some(later)).await;
    let run = run["run_id"].as_str().unwrap();
    let hang = saying("hang");
    let message = json!({ "message": { "role": "ROLE_USER", "messageId": "m", "parts": [{ "text": "hang" }] } });
    let rpc = |method: &str, params: &Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let tool = json!({ "name": "swarm", "arguments": { "question": "hang" } });
    let words = json!([{ "role": "user", "content": "hang" }]);
    let mut streams = Vec::new();
    for (method, path, body) in [
        ("GET", format!("{runs}/{run}/stream"), None),
        ("GET", format!("/threads/{thread}/stream"), None),
        ("GET", format!("/runs/{run}/stream"), None),
        ("POST", "/runs/stream".to_owned(), Some(hang)),
        (
            "POST",
            format!("/threads/{thread}/stream/events"),
            Some(json!({ "channels": ["lifecycle"] })),
        ),
        (
            "POST",
            "/v1/responses".to_owned(),
            Some(json!({ "model": "swarm", "input": "hang", "stream": true })),
        ),
        (
            "POST",
            "/v1/chat/completions".to_owned(),
            Some(json!({ "model": "swarm", "messages": words, "stream": true })),
        ),
        ("POST", "/a2a/message:stream".to_owned(), Some(message.clone())),
        ("POST", "/a2a".to_owned(), Some(rpc("SendStreamingMessage", &message))),
        ("POST", "/mcp".to_owned(), Some(rpc("tools/call", &tool))),
    ] {
        let asked = served.http.request(method.parse().unwrap(), format!("{}{path}", served.url));
        let asked = asked
            .header(name, secret)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-06-18")
            .header("a2a-version", "1.0")
            .header("content-type", "application/json")
            .body(body.map(|body| body.to_string()).unwrap_or_default());
        let answer = asked.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{method} {path}");
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with("text/event-stream"), "{method} {path}: {kind}");
        streams.push((format!("{method} {path}"), answer));
    }
    let url = format!("{}/threads/{thread}/stream/events", served.url.replace("http", "ws"));
    let mut asked = url.as_str().into_client_request().unwrap();
    asked.headers_mut().insert(name, secret.parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(asked).await.unwrap();
    let wanted = json!({ "channels": ["lifecycle"] });
    let wanted = json!({ "id": 1, "method": "subscription.subscribe", "params": wanted });
    socket.send(Message::text(wanted.to_string())).await.unwrap();
    socket.next().await.unwrap().unwrap();
    Open { streams, socket }
}

impl Open {
    /// Reads all to their ends, after which the service has sent nothing more.
    async fn ends(mut self) {
        for (what, answer) in self.streams {
            let left = tokio::time::timeout(PATIENCE, answer.text()).await;
            assert!(left.is_ok(), "it continues: {what}");
            // What was said before is there; that anything ended well is not.
            let left = left.unwrap().unwrap_or_default();
            assert!(!left.contains("Hello from the star."), "{what}: {left}");
        }
        let close = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Close(close))) => return close,
                    Some(Ok(_)) => {}
                    other => panic!("it ended otherwise: {other:?}"),
                }
            }
        };
        let close = tokio::time::timeout(PATIENCE, close).await.unwrap().unwrap();
        assert_eq!(u16::from(close.code), 4401, "{close}");
    }
}

/// S3.04: the Agent Server API, the thread protocol by both ways, OpenAI's and A2A's streams, and MCP's.
async fn a_revoked_key_ends_what_is_open_by_it_on_every_face(served: Served) {
    let secret = key(&served, &["reports"]).await;
    let other = key(&served, &["other"]).await;
    let open_by_it = open(&served, "x-api-key", &secret).await;
    let kept = open(&served, "x-api-key", &other).await;
    served.program(&["keys", "revoke", "reports"]).await;
    open_by_it.ends().await;
    // What another key holds open continues: each answers when its key is gone as well.
    for (what, mut answer) in kept.streams {
        let next = futures::poll!(std::pin::pin!(async {
            while let Ok(Some(_)) = answer.chunk().await {}
        }));
        assert!(next.is_pending(), "it ended: {what}");
    }
}

/// S3.04: a token that runs out ends what is open by it, and nobody has to revoke anything.
#[tokio::test]
async fn an_expired_token_ends_its_open_streams() {
    let issuer = Issuer::start().await;
    let served = Served::sqlite().await;
    let served = served.again_with(&[("PERIHELION_SERVE_JWT", &issuer.settings())]).await;
    let long = issuer.token(&header(), &claims(perihelion::clock::now().timestamp() + 3_600));
    // It opens the streams first by a token that lasts, so that all is warm.
    let kept = open(&served, "authorization", &long).await;
    let short = issuer.token(&header(), &claims(perihelion::clock::now().timestamp() + 5));
    open(&served, "authorization", &short).await.ends().await;
    let (code, why) = ask(&served, "GET", "/info", &[("authorization", &short)], None).await;
    assert_eq!(code, 401);
    assert!(why["detail"].as_str().unwrap().contains("expired"), "{why}");
    assert_eq!(ask(&served, "GET", "/info", &[("authorization", &long)], None).await.0, 200);
    drop(kept);
}

/// S3.04: `alg: none`, the published key as a secret, keys that the token brings or names, and key ids without end.
#[tokio::test]
async fn forged_tokens_admit_no_caller_and_cause_no_request_for_keys() {
    let issuer = Issuer::start().await;
    let evil = Issuer::start().await;
    let served = Served::sqlite().await;
    let served = served.again_with(&[("PERIHELION_SERVE_JWT", &issuer.settings())]).await;
    let claims = claims(perihelion::clock::now().timestamp() + 600);
    let with = |name: &str, value: Value| {
        let mut header = header();
        header[name] = value;
        header
    };
    let by_secret = |algorithm, name: &str, secret: &[u8]| {
        let key = hmac::Key::new(algorithm, secret);
        signed(&with("alg", json!(name)), &claims, |text| hmac::sign(&key, text).as_ref().to_vec())
    };
    let jwk = issuer.jwk().to_string();
    let x = issuer.jwk()["x"].as_str().unwrap().to_owned();
    for (what, token) in [
        ("alg: none", signed(&json!({ "alg": "none" }), &claims, |_| Vec::new())),
        ("alg: None", signed(&with("alg", json!("None")), &claims, |_| Vec::new())),
        ("the key as a secret", by_secret(hmac::HMAC_SHA256, "HS256", jwk.as_bytes())),
        ("a part of it", by_secret(hmac::HMAC_SHA512, "HS512", x.as_bytes())),
        ("jku", evil.token(&with("jku", json!(evil.jwks_url)), &claims)),
        ("x5u", evil.token(&with("x5u", json!(evil.jwks_url)), &claims)),
        ("jwk", evil.token(&with("jwk", evil.jwk()), &claims)),
        ("an address as a key's id", evil.token(&with("kid", json!(evil.jwks_url)), &claims)),
        ("a path as a key's id", evil.token(&with("kid", json!("../../etc/passwd")), &claims)),
    ] {
        let (code, why) = ask(&served, "GET", "/info", &[("authorization", &token)], None).await;
        assert_eq!(code, 401, "{what}: {why}");
    }
    assert_eq!(evil.asked(), 0, "the token's own keys were asked for");
    for number in 0..200 {
        let token = evil.token(&with("kid", json!(format!("flood-{number}"))), &claims);
        let (code, _) = ask(&served, "GET", "/info", &[("authorization", &token)], None).await;
        assert_eq!(code, 401);
    }
    assert!(issuer.asked() < 20, "the issuer was asked for each: {}", issuer.asked());
    let good = issuer.token(&header(), &claims);
    assert_eq!(ask(&served, "GET", "/info", &[("authorization", &good)], None).await.0, 200);
}

/// S3.04
async fn a_disabled_user_s_threads_and_streams_end(served: Served) {
    let served = served.again_with(&[("PERIHELION_SERVE_REGISTRATION", "true")]).await;
    served.program_with_input(&["users", "add", "ann"], "correct horse\n").await;
    let boss = key(&served, &["boss", "--scopes", "read,run,approve,manage"]).await;
    let boss = [("x-api-key", boss.as_str())];
    let ann = key(&served, &["laptop", "--user", "ann", "--scopes", "read,run,approve"]).await;
    let who = [("x-api-key", ann.as_str())];
    let waits = id(&ask(&served, "POST", "/threads", &who, Some(json!({}))).await);
    let wait = format!("/threads/{waits}/runs/wait");
    ask(&served, "POST", &wait, &who, Some(saying("approve this"))).await;
    let open_by_her = open(&served, "x-api-key", &ann).await;
    let thread = id(&ask(&served, "POST", "/threads", &who, Some(json!({}))).await);
    let runs = format!("/threads/{thread}/runs");
    let (_, run) = ask(&served, "POST", &runs, &who, Some(saying("hang"))).await;
    let run = format!("{runs}/{}", run["run_id"].as_str().unwrap());
    let (code, _) = ask(&served, "DELETE", "/v1/users/ann", &boss, None).await;
    assert_eq!(code, 204);
    open_by_her.ends().await;
    // The model never answers: only that it was stopped ends the run.
    let (_, ended) = ask(&served, "GET", &format!("{run}/join"), &boss, None).await;
    let (_, ended_as) = ask(&served, "GET", &run, &boss, None).await;
    // One that nobody had begun to drive is refused instead.
    let is_over = ["interrupted", "error"].contains(&ended_as["status"].as_str().unwrap());
    assert!(is_over, "{ended} {ended_as}");
    // What waits for a decision continues by nobody's.
    let (_, listed) = ask(&served, "GET", "/v1/approvals", &boss, None).await;
    let one = listed.as_array().unwrap().iter().find(|one| one["thread_id"] == waits.as_str());
    let approve = format!("/v1/approvals/{}/approve", one.unwrap()["id"].as_str().unwrap());
    let (code, why) = ask(&served, "POST", &approve, &boss, Some(json!({}))).await;
    assert_eq!(code, 403, "{why}");
    assert!(why["detail"].as_str().unwrap().contains("disabled"), "{why}");
    assert_eq!(served.read("notes.jsonl"), "");
}
