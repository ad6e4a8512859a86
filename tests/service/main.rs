//! The service as clients meet it: the real program, over SQLite and over Postgres, with real MCP servers as child
//! processes and a model behind HTTP. The shapes in `shapes.json` are those that the reference server was recorded with.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::panic, reason = "a test ends at what it did not expect")]

mod a2a;
mod across;
mod adversary;
mod again;
mod approvals;
mod archived;
mod attached;
mod behind;
mod callbacks;
mod cancelled;
mod crons;
mod described;
mod documents;
mod dropped;
mod face;
mod faces;
mod fidelity;
mod found;
mod growth;
mod histories;
mod issuer;
mod later;
mod limits;
mod long_runs;
mod mcp;
mod moved;
mod offered;
mod openai;
mod openai_answers;
mod openai_refusals;
mod others;
mod own_faces;
mod own_graphs;
mod page;
mod passed_over;
mod pauses;
mod people;
mod probes;
mod protocol;
mod receiver;
mod recorded;
mod replayed;
mod scans;
mod sent;
mod served;
mod shards;
mod sign_on;
mod slow;
mod sockets;
mod statements;
mod stopped;
mod streams;
mod tenants;
mod translated;
mod tried;
mod unanswered;
mod unheeded;
mod users;
mod waits;
mod withdrawn;

use perihelion_test_database::{postgres, proxy};

use serde_json::{Value, json};

use self::served::Served;

/// Runs a test on both databases.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite { $(#[tokio::test] async fn $name() { super::$name(crate::served::Served::sqlite().await).await; })+ }
        mod on_postgres { $(#[tokio::test] async fn $name() { super::$name(crate::served::Served::postgres().await).await; })+ }
    };
}
pub(crate) use on_both;

/// The body of a run that says something.
pub fn saying(text: &str) -> Value {
    json!({ "assistant_id": "swarm", "input": { "messages": [{ "role": "user", "content": text }] } })
}

on_both!(
    a_thread_of_the_service_is_the_command_line_s_as_well,
    the_command_line_asks_the_service_to_stop_a_thread_before_it_takes_it,
);

/// X5: what the service has sent is awaited and recorded; only a service that does not answer loses the thread.
async fn the_command_line_asks_the_service_to_stop_a_thread_before_it_takes_it(mut served: Served) {
    for (wait, by_force) in [("60", false), ("0", true)] {
        let thread = served.thread().await;
        let before = served.model.requests().len();
        let runs = format!("/threads/{thread}/runs");
        let (_, run) = served.post(&runs, &saying("hang")).await;
        served.model.wait_for_requests(before + 1).await;
        let args = ["threads", "cancel", &thread, "--wait", wait, "--json"];
        let output: Value = serde_json::from_str(&served.program(&args).await).unwrap();
        assert_eq!((&output["cancelled"], &output["by_force"]), (&json!(true), &json!(by_force)));
        let join = format!("{runs}/{}/join", run["run_id"].as_str().unwrap());
        served.get(&join).await;
        let (_, ended) = served.get(&format!("{runs}/{}", run["run_id"].as_str().unwrap())).await;
        assert_eq!(ended["status"], "interrupted", "{ended}");
        let nothing = served.refused(&["threads", "cancel", &thread]).await;
        assert!(nothing.contains("is not running"), "{nothing}");
    }
    served.crash().await;
}

/// X5, X8
async fn a_thread_of_the_service_is_the_command_line_s_as_well(served: Served) {
    let thread = served.thread().await;
    let (_, values) =
        served.post(&format!("/threads/{thread}/runs/wait"), &saying("clarify this")).await;
    assert_eq!(values["__interrupt__"][0]["value"]["question"], "Which year?");
    let answered = served.program(&["resume", &thread, "--message", "1945", "-q"]).await;
    assert_eq!(answered, "Hello from the star.\n");
    let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["values"]["answer"], "Hello from the star.");
    assert_eq!(state["next"], json!([]));
}

#[tokio::test]
async fn strangers_pages_and_other_names_are_refused_on_every_route() {
    let served = Served::sqlite().await;
    for path in ["/info", "/healthz", "/metrics", "/", "/nope"] {
        for (name, value) in [
            ("origin", "https://evil.example.org"),
            ("origin", "null"),
            ("host", "rebound.example.org"),
            ("sec-fetch-site", "cross-site"),
        ] {
            let asked = served.http.get(format!("{}{path}", served.url)).header(name, value);
            assert_eq!(asked.send().await.unwrap().status(), 403, "{path} with {name}: {value}");
        }
    }
    let asked =
        served.http.get(format!("{}/info", served.url)).header("origin", "http://localhost:3000");
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.headers()["access-control-allow-origin"], "http://localhost:3000");
    let exposed = answer.headers()["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("content-location") && exposed.contains("location,"), "{exposed}");
    let plain = served
        .http
        .post(format!("{}/threads", served.url))
        .header("content-type", "text/plain")
        .body("{}");
    assert_eq!(plain.send().await.unwrap().status(), 415);
}

#[tokio::test]
async fn beyond_loopback_nothing_is_served_without_a_token_and_nothing_to_who_lacks_it() {
    let served = Served::sqlite().await;
    let refused = served.refused(&["serve", "--addr", "0.0.0.0:0"]).await;
    assert!(refused.contains("PERIHELION_SERVE_TOKEN"), "{refused}");
    assert!(refused.contains("perihelion keys create"), "{refused}");
    let token = "a-token-of-many-letters";
    let served = Served::with_token(token).await;
    let asked = |key: Option<&str>| {
        let asked = served.http.get(format!("{}/info", served.url));
        key.map_or(asked.try_clone().unwrap(), |key| asked.header("x-api-key", key))
    };
    assert_eq!(asked(None).send().await.unwrap().status(), 401);
    assert_eq!(asked(Some("a-token-of-many-lettert")).send().await.unwrap().status(), 401);
    assert_eq!(asked(Some(token)).send().await.unwrap().status(), 200);
    assert_eq!(served.get("/healthz").await.0, 200);
}
