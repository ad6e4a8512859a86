//! What an adversary runs, line by line: strangers' pages, other tenants, addresses to call back, approvals, floods.

mod credentials;
mod floods;
mod redirects;
mod states;
mod words;

use std::collections::BTreeSet;

use futures::StreamExt as _;
use serde_json::{Value, json};
use sqlx::postgres::PgListener;
use tokio_tungstenite::tungstenite::{Error, client::IntoClientRequest as _};

use crate::people::{ask, id, key};
use crate::served::Served;
use crate::{on_both, saying};

on_both!(
    names_and_ids_of_another_tenant_lead_nowhere,
    an_approval_is_not_raced_replayed_read_or_given_by_who_may_not,
);

const ALL: [&str; 2] = ["--scopes", "read,run,approve,manage"];

/// An id that nothing has.
const NOBODY: &str = "0197a000-0000-7000-8000-000000000000";

/// Returns every documented route with an address that fits it.
async fn routes(served: &Served) -> Vec<(String, String)> {
    let (_, document) = served.get("/openapi.json").await;
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let parts = path.split('/').map(|part| if part.starts_with('{') { NOBODY } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        for method in methods.as_object().unwrap().keys() {
            routes.push((method.to_uppercase(), path.clone()));
        }
    }
    assert!(routes.len() > 60, "{}", routes.len());
    routes
}

/// Foreign `Host` and `Origin`, `Origin: null`, `Sec-Fetch-Site: cross-site`: on every route, reads and health too.
#[tokio::test]
async fn every_route_refuses_foreign_origins_and_host_names() {
    let served = Served::sqlite().await;
    for (method, path) in routes(&served).await {
        for header in [
            ("host", "rebound.example.org"),
            ("origin", "https://evil.example.org"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
        ] {
            let body = (method != "GET").then(|| json!({}));
            let (code, _) = ask(&served, &method, &path, &[header], body).await;
            assert_eq!(code, 403, "{method} {path} with {header:?}");
        }
    }
}

/// A socket that a stranger's page opens, for which browsers ask nobody.
#[tokio::test]
async fn a_page_of_a_foreign_origin_cannot_open_a_socket() {
    let served = Served::sqlite().await;
    let url = format!("{}/threads/{NOBODY}/stream/events", served.url.replace("http", "ws"));
    for origin in ["https://evil.example.org", "null"] {
        let mut asked = url.as_str().into_client_request().unwrap();
        asked.headers_mut().insert("origin", origin.parse().unwrap());
        match tokio_tungstenite::connect_async(asked).await {
            Err(Error::Http(answer)) => assert_eq!(answer.status(), 403, "{origin}"),
            other => panic!("{origin}: {other:?}"),
        }
    }
}

/// What is told to everybody who listens at the database, and what its queue keeps, are ids of threads and how many events
/// they have, and nothing that was said in them.
#[tokio::test]
async fn notifications_and_the_queue_contain_only_thread_ids_and_event_counts() {
    let mut served = Served::postgres().await;
    let mut listener = PgListener::connect(&served.database()).await.unwrap();
    listener.listen("perihelion_events").await.unwrap();
    let thread = served.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let (_, done) = served.post(&wait, &saying("whose-question")).await;
    assert_eq!(done["answer"], "Hello from the star.");
    // The run's last batch was told before its end was.
    let mut reported = BTreeSet::new();
    sqlx::raw_sql("SELECT pg_notify('perihelion_events', 'that is all')")
        .execute(&mut listener)
        .await
        .unwrap();
    loop {
        match listener.recv().await.unwrap().payload() {
            "that is all" => break,
            payload => {
                let (thread, last) = payload.split_once(' ').unwrap();
                assert!(last.parse::<u64>().is_ok(), "{payload}");
                reported.insert(thread.to_owned())
            }
        };
    }
    assert_eq!(reported, BTreeSet::from([thread]));
    served.program(&["worker", "--drain", "-q"]).await;
    // Nobody is left who could take the call before it is read.
    served.crash().await;
    let left = served.program(&["run", "whose-question", "--detach", "-q"]).await;
    let calls: Vec<String> = sqlx::query_scalar("SELECT to_json(c)::text FROM wake_call c")
        .fetch_all(&mut listener)
        .await
        .unwrap();
    let [call] = calls.as_slice() else { panic!("{calls:?}") };
    let call: Value = serde_json::from_str(call).unwrap();
    assert_eq!(call["thread_id"], left.trim(), "{call}");
    assert!(!call.to_string().contains("whose-question"), "{call}");
}

/// JSON sent as `text/plain`, which a page may send without asking.
#[tokio::test]
async fn no_route_accepts_json_that_is_sent_as_text() {
    let served = Served::sqlite().await;
    for (method, path) in routes(&served).await {
        // The end of a session takes no body.
        if method == "GET" || method == "DELETE" || path == "/v1/auth/logout" {
            continue;
        }
        let asked = served.http.request(method.parse().unwrap(), format!("{}{path}", served.url));
        let asked = asked.header("content-type", "text/plain").body("{\"command\": {}}");
        let answer = asked.send().await.unwrap();
        let code = answer.status().as_u16();
        // JSON-RPC says in its body that nothing was done.
        let message: Value =
            serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default();
        let is_refused = (400..500).contains(&code)
            || (path.trim_end_matches('/') == "/a2a" && message["error"].is_object());
        assert!(is_refused, "{method} {path}: {code} {message}");
    }
}

/// Without credentials, once somebody is known: every route but those that let in.
#[tokio::test]
async fn every_route_refuses_unauthenticated_callers_once_there_is_a_user() {
    let served = Served::sqlite().await;
    let routes = routes(&served).await;
    key(&served, &["ours"]).await;
    let open = [
        "/healthz",
        "/readyz",
        "/v1/auth/login",
        "/v1/auth/register",
        "/v1/auth/ways",
        "/v1/auth/oidc/login",
        "/v1/auth/oidc/callback",
        "/v1/auth/oidc/logout",
        "/ok",
        "/.well-known/agent-card.json",
    ];
    for (method, path) in routes {
        if open.contains(&path.as_str()) {
            continue;
        }
        let body = (method != "GET").then(|| json!({}));
        let (code, message) = ask(&served, &method, &path, &[], body).await;
        assert_eq!(code, 401, "{method} {path}: {message}");
    }
}

/// S3.04: Tenant B with A's thread, checkpoint, interrupt, `Last-Event-ID`, task, and a name that can be guessed.
async fn names_and_ids_of_another_tenant_lead_nowhere(served: Served) {
    let ours = key(&served, &["ours", ALL[0], ALL[1]]).await;
    let theirs = key(&served, &["theirs", "--tenant", "acme", ALL[0], ALL[1]]).await;
    let ours = [("x-api-key", ours.as_str())];
    let theirs = [("x-api-key", theirs.as_str())];
    let thread = id(&ask(&served, "POST", "/threads", &theirs, Some(json!({}))).await);
    let wait = format!("/threads/{thread}/runs/wait");
    ask(&served, "POST", &wait, &theirs, Some(saying("approve this"))).await;
    let (_, waiting) = ask(&served, "GET", "/v1/approvals", &theirs, None).await;
    let interrupt = waiting[0]["id"].as_str().unwrap().to_owned();
    let (_, state) = ask(&served, "GET", &format!("/threads/{thread}/state"), &theirs, None).await;
    let checkpoint = state["checkpoint"]["checkpoint_id"].as_str().unwrap().to_owned();
    let (_, runs) = ask(&served, "GET", &format!("/threads/{thread}/runs"), &theirs, None).await;
    let run = runs[0]["run_id"].as_str().unwrap().to_owned();

    assert_eq!(ask(&served, "GET", "/v1/approvals", &ours, None).await.1, json!([]));
    let (_, history) = ask(&served, "GET", "/v1/approvals/history", &ours, None).await;
    assert_eq!(history["requests"], json!([]));
    for (method, path, body, codes) in [
        ("GET", format!("/v1/approvals/{interrupt}"), None, [404, 409]),
        ("POST", format!("/v1/approvals/{interrupt}/approve"), Some(json!({})), [404, 409]),
        ("POST", format!("/v1/approvals/{interrupt}/deny"), Some(json!({})), [404, 409]),
        ("GET", format!("/threads/{thread}/state/{checkpoint}"), None, [404, 404]),
        ("GET", format!("/v1/threads/{thread}/artifacts"), None, [404, 404]),
        ("GET", format!("/v1/responses/resp_{run}"), None, [404, 404]),
    ] {
        let (code, message) = ask(&served, method, &path, &ours, body).await;
        assert!(codes.contains(&code), "{method} {path}: {code} {message}");
    }
    let own = id(&ask(&served, "POST", "/threads", &ours, Some(json!({}))).await);
    let mut from_there = saying("hello");
    from_there["checkpoint_id"] = json!(checkpoint);
    let path = format!("/threads/{own}/runs/wait");
    let (code, message) = ask(&served, "POST", &path, &ours, Some(from_there)).await;
    assert!((400..500).contains(&code), "a checkpoint of another thread: {code} {message}");
    let resumed = [ours[0], ("last-event-id", "1")];
    for path in [format!("/threads/{thread}/runs/{run}/stream"), format!("/runs/{run}/stream")] {
        assert_eq!(ask(&served, "GET", &path, &resumed, None).await.0, 404, "{path}");
    }
    let continued = json!({ "model": "swarm", "input": "hi", "previous_response_id": format!("resp_{}", run.replace('-', "")) });
    let (code, _) = ask(&served, "POST", "/v1/responses", &ours, Some(continued)).await;
    assert_eq!(code, 404);

    // A name is each tenant's own: it leads to a thread of theirs, and never to another one's.
    let send = |text: &str| {
        let parts = json!([{ "text": text }]);
        json!({ "message": { "role": "ROLE_USER", "messageId": text, "contextId": "shared", "parts": parts } })
    };
    let mut contexts = Vec::new();
    for (one, text) in [(&ours, "m1"), (&theirs, "m2")] {
        let headers = [one[0], ("a2a-version", "1.0")];
        let (code, message) =
            ask(&served, "POST", "/a2a/message:send", &headers, Some(send(text))).await;
        assert_eq!(code, 200, "{message}");
        contexts.push(message["task"]["contextId"].clone());
    }
    assert_ne!(contexts[0], contexts[1]);
}

/// S3.09: Approvals: raced, replayed, by GET, by a key that may not, with arguments that are not the tool's.
async fn an_approval_is_not_raced_replayed_read_or_given_by_who_may_not(served: Served) {
    let boss = key(&served, &["boss", ALL[0], ALL[1]]).await;
    let agent = key(&served, &["agent", "--scopes", "read,run"]).await;
    let boss = [("x-api-key", boss.as_str())];
    let agent = [("x-api-key", agent.as_str())];
    let thread = id(&ask(&served, "POST", "/threads", &agent, Some(json!({}))).await);
    let wait = format!("/threads/{thread}/runs/wait");
    ask(&served, "POST", &wait, &agent, Some(saying("approve this"))).await;
    let (_, waiting) = ask(&served, "GET", "/v1/approvals", &agent, None).await;
    let one = waiting[0]["id"].as_str().unwrap();
    let approve = format!("/v1/approvals/{one}/approve");
    assert_eq!(ask(&served, "GET", &approve, &boss, None).await.0, 405);
    assert_eq!(ask(&served, "POST", &approve, &agent, Some(json!({}))).await.0, 403);
    let edited = json!({ "decision": "approve", "arguments": { "text": "mine" } });
    let path = format!("/v1/approvals/{one}");
    assert_eq!(ask(&served, "POST", &path, &agent, Some(edited)).await.0, 403);
    let beside = json!({ "answer": { "decision": "approve", "timeout": true } });
    let (code, message) = ask(&served, "POST", &path, &boss, Some(beside)).await;
    assert_eq!(code, 422, "{message}");

    let race = (0..1_000).map(|_| ask(&served, "POST", &approve, &boss, Some(json!({}))));
    let answers: Vec<(u16, Value)> =
        futures::stream::iter(race).buffer_unordered(200).collect().await;
    let won: Vec<&(u16, Value)> = answers.iter().filter(|(code, _)| *code == 200).collect();
    assert_eq!(won.len(), 1, "{answers:?}");
    assert!(answers.iter().all(|(code, _)| [200, 409].contains(code)), "{answers:?}");
    let run = won[0].1["run_id"].as_str().unwrap();
    ask(&served, "GET", &format!("/threads/{thread}/runs/{run}/join"), &agent, None).await;
    assert_eq!(ask(&served, "POST", &approve, &boss, Some(json!({}))).await.0, 409);
    assert_eq!(served.read("notes.jsonl").lines().count(), 1, "sent once");
}
