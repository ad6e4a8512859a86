//! Words that mislead: what an answer, a tool's name or the arguments of a call would show or do.

use futures::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::served::Served;
use crate::{on_both, saying};

on_both!(
    invisible_characters_in_arguments_are_written_out_for_the_approver,
    filters_of_more_parts_than_a_statement_takes_are_refused,
    names_that_no_index_takes_are_refused,
    no_way_in_takes_the_character_that_a_database_cannot_keep,
);

/// S3.09: ASI09: text that turns its direction or has no width, in the arguments of a call that waits for a person.
async fn invisible_characters_in_arguments_are_written_out_for_the_approver(served: Served) {
    let thread = served.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let (_, waits) = served.post(&wait, &saying("approve this: mislead")).await;
    let asked = &waits["__interrupt__"][0];
    let request = &asked["value"]["action_requests"][0];
    // What is sent is what was asked, and the request says what it is.
    assert_eq!(request["args"]["text"], "pay 1\u{202e}00\u{200b} to Ann", "{waits}");
    let text = request["description"].as_str().unwrap();
    assert!(
        text.contains("invisible characters") && text.contains("\\u{202e}00\\u{200b}"),
        "{text}"
    );
    let id = asked["id"].as_str().unwrap();
    for shown in [
        served.program(&["approvals", "show", id]).await,
        served.program(&["approvals", "list"]).await,
    ] {
        assert!(!shown.contains(['\u{202e}', '\u{200b}']), "{shown}");
    }
}

/// What an answer shows cannot reach outside: the page loads nothing from elsewhere and runs nothing inline.
#[tokio::test]
async fn the_page_may_not_load_from_elsewhere() {
    let served = Served::sqlite().await;
    let page = served.http.get(format!("{}/", served.url)).send().await.unwrap();
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("default-src"), "{policy}");
    for rule in policy.split(';').map(str::trim) {
        let outside = rule.contains("http:") || rule.contains("https:") || rule.contains('*');
        assert!(!outside, "{rule}");
        let runs_inline = rule.starts_with("script-src") && rule.contains("unsafe");
        assert!(!runs_inline, "{rule}");
    }
}

/// X5
async fn filters_of_more_parts_than_a_statement_takes_are_refused(served: Served) {
    let fields = |count: usize| -> Value {
        let fields = (0..count).map(|number| (format!("f{number}"), json!("x")));
        fields.collect::<serde_json::Map<_, _>>().into()
    };
    let words = |count: usize| json!({ "tags": vec!["x"; count] });
    let nested = (0..110).fold(json!("x"), |inner, _| json!({ "a": inner }));
    for (path, name) in [
        ("/store/items/search", "filter"),
        ("/threads/search", "metadata"),
        ("/threads/count", "metadata"),
        ("/assistants/search", "metadata"),
        ("/assistants/count", "metadata"),
        ("/runs/crons/search", "metadata"),
        ("/runs/crons/count", "metadata"),
    ] {
        for many in [fields(1_100), words(1_100), nested.clone()] {
            let (code, reply) = served.post(path, &json!({ (name): many })).await;
            assert_eq!(code, 422, "{path}: {reply}");
        }
        for some in [fields(100), words(90)] {
            let (code, reply) = served.post(path, &json!({ (name): some })).await;
            assert_eq!(code, 200, "{path}: {reply}");
        }
    }
}

/// X5
async fn names_that_no_index_takes_are_refused(served: Served) {
    // Text that does not compress.
    let long = |count: usize| -> String {
        let digest = |number: usize| uuid::Uuid::new_v5(&uuid::Uuid::nil(), &number.to_be_bytes());
        (0..count).map(|number| digest(number).simple().to_string()).collect()
    };
    let put = async |namespace: Value, key: String| {
        let item = json!({ "namespace": namespace, "key": key, "value": {} });
        served.send(Method::PUT, "/store/items", &item).await
    };
    for (namespace, key) in [(json!(["a"]), long(100)), (json!([long(100)]), "k".to_owned())] {
        let (code, reply) = put(namespace, key).await;
        assert_eq!(code, 422, "{reply}");
    }
    let (code, reply) = put(json!(["a", long(30)]), long(30)).await;
    assert_eq!(code, 204, "{reply}");
}

/// X5
async fn no_way_in_takes_the_character_that_a_database_cannot_keep(served: Served) {
    let thread = uuid::Uuid::now_v7();
    let mut params = saying("hello");
    params["metadata"] = json!({ "a": "x\u{0}" });
    let start = json!({ "id": 1, "method": "run.start", "params": params }).to_string();
    let url = format!("{}/threads/{thread}/stream/events", served.url.replace("http", "ws"));
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    socket.send(Message::text(start)).await.unwrap();
    let reply = socket.next().await.unwrap().unwrap();
    let reply: Value = serde_json::from_str(reply.to_text().unwrap()).unwrap();
    assert_eq!(reply["error"], "invalid_argument", "{reply}");
    assert_eq!(served.get(&format!("/threads/{thread}")).await.0, 404, "a thread was made");
    let arguments = json!({ "question": "hello" });
    let call = json!({
        "jsonrpc": "2.0", "id": "\u{0}", "method": "tools/call",
        "params": { "name": "swarm", "arguments": arguments },
    });
    let asked = served.http.post(format!("{}/mcp", served.url));
    let asked = asked.header("accept", "application/json, text/event-stream");
    let asked = asked.header("content-type", "application/json").body(call.to_string());
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.status(), 400, "{answer:?}");
    assert_eq!(served.post("/threads/count", &json!({})).await.1, json!(0));
}
