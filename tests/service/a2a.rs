//! Tasks of other agents: taken back, followed to their ends, listed, shown as far as is wanted, refused by the names of A2A 1.0.

use serde_json::{Value, json};

use super::on_both;
use super::served::Served;

on_both!(
    a_waiting_task_can_be_cancelled_by_its_sender,
    all_followers_of_a_task_receive_the_same_events_until_it_ends,
    a_follower_of_a_task_receives_an_answer_from_the_command_line,
    as_much_of_tasks_is_shown_as_is_wanted,
    unsupported_parts_are_refused_by_name,
    a_client_that_names_no_version_speaks_an_older_one,
    a_deleted_configuration_is_answered_by_an_empty_object,
    what_is_no_request_of_json_rpc_is_refused_as_such,
    tasks_are_listed_by_known_states_and_in_pages_of_a_permitted_size,
);

fn message(text: &str) -> Value {
    json!({ "message": { "messageId": format!("m-{text}"), "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

async fn send(served: &Served, body: &Value) -> Value {
    let (code, sent) = served.post("/a2a/message:send", body).await;
    assert_eq!(code, 200, "{sent}");
    sent["task"].clone()
}

async fn rpc(served: &Served, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    served.post("/a2a", &body).await.1
}

/// S2.12
async fn a_waiting_task_can_be_cancelled_by_its_sender(served: Served) {
    for text in ["approve this", "clarify this"] {
        let task = send(&served, &message(text)).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
        let id = task["id"].as_str().unwrap();
        let (code, gone) = served.post(&format!("/a2a/tasks/{id}:cancel"), &json!({})).await;
        assert_eq!(
            (code, &gone["status"]["state"]),
            (200, &json!("TASK_STATE_CANCELED")),
            "{gone}"
        );
        assert_eq!(served.get("/v1/approvals").await.1, json!([]));
        let (code, again) = served.post(&format!("/a2a/tasks/{id}:cancel"), &json!({})).await;
        assert_eq!((code, &again["error"]["status"]), (400, &json!("FAILED_PRECONDITION")));
        assert_eq!(again["error"]["details"][0]["reason"], "TASK_NOT_CANCELABLE");
        // The context continues with another task.
        let mut next = message("hello");
        next["message"]["contextId"] = task["contextId"].clone();
        assert_eq!(send(&served, &next).await["status"]["state"], "TASK_STATE_COMPLETED");
        let shown = rpc(&served, "GetTask", json!({ "id": id })).await;
        assert_eq!(shown["result"]["status"]["state"], "TASK_STATE_CANCELED");
    }
}

/// S2.12, X5, X8
async fn all_followers_of_a_task_receive_the_same_events_until_it_ends(served: Served) {
    let task = send(&served, &message("approve this")).await;
    let place = format!("{}/a2a/tasks/{}", served.url, task["id"].as_str().unwrap());
    let mut streams = Vec::new();
    for _ in 0..2 {
        let followed = served.http.get(format!("{place}:subscribe"));
        let mut stream = followed.send().await.unwrap();
        let first = stream.chunk().await.unwrap().unwrap();
        streams.push((stream, first.to_vec()));
    }
    let (_, open) = served.get("/v1/approvals").await;
    let approve = format!("/v1/approvals/{}/approve", open[0]["id"].as_str().unwrap());
    assert_eq!(served.post(&approve, &json!({})).await.0, 200);
    let mut heard = Vec::new();
    for (mut stream, mut all) in streams {
        while let Some(more) = stream.chunk().await.unwrap() {
            all.extend_from_slice(&more);
        }
        let lines = String::from_utf8(all).unwrap();
        let events: Vec<Value> = lines
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
            .collect();
        heard.push(events);
    }
    let states = |events: &[Value]| -> Vec<String> {
        let of = |event: &Value| {
            let state = event["task"]["status"]["state"].as_str();
            state.or_else(|| event["statusUpdate"]["status"]["state"].as_str()).map(str::to_owned)
        };
        events.iter().filter_map(of).collect()
    };
    let wanted = ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"];
    assert_eq!(states(&heard[0]), wanted);
    assert_eq!(heard[0], heard[1]);
    let (_, shown) = served.get(&format!("/a2a/tasks/{}", task["id"].as_str().unwrap())).await;
    assert_eq!(shown["artifacts"][0]["parts"][0]["text"], "Hello from the star.");
}

/// S2.12, X8
async fn a_follower_of_a_task_receives_an_answer_from_the_command_line(served: Served) {
    let task = send(&served, &message("clarify this")).await;
    let id = task["id"].as_str().unwrap();
    let followed = served.http.get(format!("{}/a2a/tasks/{id}:subscribe", served.url));
    let followed = followed.send().await.unwrap();
    let thread = task["contextId"].as_str().unwrap();
    served.program(&["resume", thread, "--message", "1945", "-q"]).await;
    let heard = followed.text().await.unwrap();
    let last = heard.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "{heard}");
}

/// S2.12
async fn as_much_of_tasks_is_shown_as_is_wanted(served: Served) {
    let mut first = message("clarify this");
    first["message"]["parts"] = json!([{ "text": "clarify" }, { "text": "this" }]);
    let first = send(&served, &first).await;
    assert_eq!(first["history"][0]["parts"], json!([{ "text": "clarify" }, { "text": "this" }]));
    let second = send(&served, &message("hello")).await;
    let mut answer = message("1945");
    answer["message"]["taskId"] = first["id"].clone();
    answer["configuration"] = json!({ "historyLength": 0 });
    let done = send(&served, &answer).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    assert!(done.get("history").is_none(), "{done}");
    assert!(done["status"]["timestamp"].as_str().unwrap().ends_with('Z'), "{done}");
    let id = first["id"].as_str().unwrap();
    let (_, shown) = served.get(&format!("/a2a/tasks/{id}?historyLength=1")).await;
    let shown_by_rpc = rpc(&served, "GetTask", json!({ "id": id, "history_length": 1 })).await;
    assert_eq!(shown, shown_by_rpc["result"]);
    assert_eq!(shown["history"].as_array().unwrap().len(), 1);
    assert_eq!(shown["history"][0]["parts"][0]["text"], "1945");
    // What changed last comes first; nothing but the tenant bounds a list without a context.
    let (_, page) = served.get("/a2a/tasks?pageSize=1&historyLength=0").await;
    assert_eq!((&page["tasks"][0]["id"], &page["totalSize"]), (&first["id"], &json!(2)));
    assert!(page["tasks"][0].get("artifacts").is_none(), "{page}");
    let next = page["nextPageToken"].as_str().unwrap();
    let (_, page) =
        served.get(&format!("/a2a/tasks?pageSize=1&includeArtifacts=true&pageToken={next}")).await;
    assert_eq!((&page["tasks"][0]["id"], &page["nextPageToken"]), (&second["id"], &json!("")));
    assert_eq!(page["tasks"][0]["artifacts"][0]["parts"][0]["text"], "Hello from the star.");
    let of_context = json!({ "context_id": second["contextId"], "status": "TASK_STATE_COMPLETED" });
    let listed = rpc(&served, "ListTasks", of_context).await;
    assert_eq!(listed["result"]["tasks"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(served.get("/a2a/tasks?pageToken=7").await.0, 400);
}

/// S2.12
async fn unsupported_parts_are_refused_by_name(served: Served) {
    let mut file = message("read this");
    file["message"]["parts"] = json!([{ "raw": "aGVsbG8=", "mediaType": "application/x-unknown" }]);
    let (code, refused) = served.post("/a2a/message:send", &file).await;
    assert_eq!(code, 400, "{refused}");
    assert_eq!(refused["error"]["details"][0]["reason"], "CONTENT_TYPE_NOT_SUPPORTED");
    assert_eq!(rpc(&served, "SendMessage", file).await["error"]["code"], -32005);
    // A client may join the card's address and "/".
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("hello") });
    let (code, sent) = served.post("/a2a/", &body).await;
    assert_eq!(
        (code, &sent["result"]["task"]["status"]["state"]),
        (200, &json!("TASK_STATE_COMPLETED"))
    );
    let asked =
        served.http.post(format!("{}/a2a", served.url)).header("content-type", "text/plain");
    let reply: Value = asked.body("{}").send().await.unwrap().json().await.unwrap();
    assert_eq!(reply["error"]["code"], -32005);
}

/// S2.12: section 3.6.2 of the specification: no version means 0.3.
async fn a_client_that_names_no_version_speaks_an_older_one(served: Served) {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("hello") });
    for (version, is_known) in
        [(None, false), (Some(""), false), (Some("0.3"), false), (Some("1.0"), true)]
    {
        let asked = |path: &str, body: &Value| {
            let asked = http.post(format!("{}{path}", served.url));
            let asked = asked.header("content-type", "application/json").body(body.to_string());
            match version {
                Some(version) => asked.header("a2a-version", version),
                None => asked,
            }
        };
        let reply = asked("/a2a", &body).send().await.unwrap();
        let reply: Value = serde_json::from_str(&reply.text().await.unwrap()).unwrap();
        let by_rest = asked("/a2a/message:send", &message("hello")).send().await.unwrap();
        if is_known {
            assert!(reply["result"]["task"].is_object(), "{version:?}: {reply}");
            assert_eq!(by_rest.status(), 200, "{version:?}");
            continue;
        }
        assert_eq!(reply["error"]["code"], -32009, "{version:?}: {reply}");
        assert!(reply["error"]["message"].as_str().unwrap().contains("A2A-Version: 1.0"));
        assert_eq!(by_rest.status(), 400, "{version:?}");
        let why: Value = serde_json::from_str(&by_rest.text().await.unwrap()).unwrap();
        assert_eq!(why["error"]["details"][0]["reason"], "VERSION_NOT_SUPPORTED", "{why}");
    }
    let by_address = http.get(format!("{}/a2a/tasks?A2A-Version=1.0", served.url));
    assert_eq!(by_address.send().await.unwrap().status(), 200);
    let unknown = http.request(reqwest::Method::TRACE, format!("{}/a2a/tasks", served.url));
    assert_eq!(unknown.send().await.unwrap().status(), 405);
}

/// S2.12
async fn a_deleted_configuration_is_answered_by_an_empty_object(served: Served) {
    let task = send(&served, &message("hello")).await["id"].as_str().unwrap().to_owned();
    let params = json!({ "taskId": task, "id": "none" });
    let gone = rpc(&served, "DeleteTaskPushNotificationConfig", params).await;
    assert_eq!(gone["result"], json!({}), "{gone}");
    let place = format!("/a2a/tasks/{task}/pushNotificationConfigs/none");
    let gone = served.send(reqwest::Method::DELETE, &place, &json!({})).await;
    assert_eq!(gone, (200, json!({})));
    let (_, card) = served.get("/.well-known/agent-card.json").await;
    for skill in card["skills"].as_array().unwrap() {
        assert!(!skill["description"].as_str().unwrap().trim().is_empty(), "{skill}");
    }
}

/// S2.12: section 9.5 of the specification.
async fn what_is_no_request_of_json_rpc_is_refused_as_such(served: Served) {
    let sent =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("hello") });
    let with = |name: &str, value: Value| {
        let mut request = sent.clone();
        request[name] = value;
        request
    };
    for (body, id) in [
        (with("jsonrpc", json!("1.0")), json!(1)),
        (with("jsonrpc", Value::Null), json!(1)),
        (with("method", json!(7)), json!(1)),
        (with("id", json!({})), Value::Null),
        (with("id", json!(true)), Value::Null),
        (json!([sent.clone()]), Value::Null),
        (json!([]), Value::Null),
        (json!({}), Value::Null),
        (json!(7), Value::Null),
    ] {
        let (code, reply) = served.post("/a2a", &body).await;
        let found = (code, &reply["error"]["code"], &reply["id"]);
        assert_eq!(found, (200, &json!(-32600), &id), "{body}: {reply}");
    }
    // The fields of a message, without their names.
    let list = json!([message("hello")["message"]]);
    let (_, reply) = served.post("/a2a", &with("params", list.clone())).await;
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    let (code, reply) = served.post("/a2a/message:send", &list).await;
    let list_refused = json!("the body must be an object");
    assert_eq!((code, &reply["error"]["message"]), (400, &list_refused), "{reply}");
    let wrong = json!({ "message": { "messageId": "m", "contextId": 7 } });
    let (_, reply) = served.post("/a2a", &with("params", wrong)).await;
    let why = reply["error"]["message"].as_str().unwrap();
    assert!(why.starts_with("message.contextId: invalid type"), "{reply}");
    assert!(served.model.requests().is_empty(), "nothing was begun");
    let (_, unknown) = served.post("/a2a", &with("method", json!("Dance"))).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let (_, named) = served.post("/a2a", &with("id", json!("a"))).await;
    assert!(named["id"] == "a" && named["result"].is_object(), "{named}");
}

/// S2.12
async fn tasks_are_listed_by_known_states_and_in_pages_of_a_permitted_size(served: Served) {
    send(&served, &message("hello")).await;
    for wrong in [
        json!({ "status": "completed" }),
        json!({ "status": "TASK_STATE_DONE" }),
        json!({ "pageSize": 0 }),
        json!({ "pageSize": 101 }),
    ] {
        let reply = rpc(&served, "ListTasks", wrong.clone()).await;
        assert_eq!(reply["error"]["code"], -32602, "{wrong}: {reply}");
    }
    for (asked, count) in [
        (json!({ "status": "TASK_STATE_COMPLETED", "pageSize": 100 }), 1),
        (json!({ "status": "TASK_STATE_REJECTED", "pageSize": 1 }), 0),
        (json!({ "status": "" }), 1),
    ] {
        let reply = rpc(&served, "ListTasks", asked.clone()).await;
        let tasks = reply["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{reply}"));
        assert_eq!(tasks.len(), count, "{asked}: {reply}");
    }
}
