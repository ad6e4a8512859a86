//! Webhooks and push notifications: said once a run has ended, until they are taken, and to nobody inside.

use perihelion_database::{Database, query};
use serde_json::{Value, json};

use super::receiver::{Call, Receiver};
use super::served::Served;
use super::{on_both, saying};

on_both!(
    a_webhook_is_called_after_its_run_until_it_is_accepted,
    an_internal_address_is_called_only_if_the_operator_allows_it,
    an_agent_receives_the_status_of_its_task,
    an_address_that_comes_with_each_message_is_one,
    an_agent_receives_the_outcome_of_its_task_after_an_answer_by_another_person,
    secrets_of_addresses_are_not_readable_in_a_database_with_a_key,
    credentials_that_no_header_can_have_are_refused,
);

/// The settings that let tests be called.
pub const ALLOWED: [(&str, &str); 1] = [("PERIHELION_SERVE_CALLBACK_HOSTS", "127.0.0.1")];

/// S2.12, X5
async fn a_webhook_is_called_after_its_run_until_it_is_accepted(served: Served) {
    let mut served = served.again_with(&ALLOWED).await;
    let mut receiver = Receiver::answering(&[503]).await;
    let thread = served.thread().await;
    let mut body = saying("hello");
    body["webhook"] = json!(receiver.url);
    let (code, run) = served.post(&format!("/threads/{thread}/runs"), &body).await;
    assert_eq!(code, 200, "{run}");
    let first = receiver.next().await;
    assert_eq!(first.body["run_id"], run["run_id"]);
    assert_eq!(first.body["status"], "success");
    assert_eq!(first.body["values"]["answer"], "Hello from the star.");
    // It was not taken: anyone who serves the database next sends the very same.
    served.crash_and_start_again().await;
    let second = receiver.next().await;
    assert_eq!(second.body, first.body);
    let id = "x-perihelion-delivery";
    assert_eq!(second.header(id), first.header(id));
    // A run that ends later is told of later, so that nothing else can be on its way.
    let (_, other) = served.post(&format!("/threads/{thread}/runs"), &body).await;
    assert_eq!(receiver.next().await.body["run_id"], other["run_id"]);
    assert!(receiver.is_empty());
}

/// X5
async fn an_internal_address_is_called_only_if_the_operator_allows_it(served: Served) {
    let thread = served.thread().await;
    for inside in [
        "http://127.0.0.1:9/",
        "http://localhost:9/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:10.0.0.1]/",
        "http://user:secret@example.org/",
        "file:///etc/passwd",
        "nowhere",
    ] {
        let mut body = saying("hello");
        body["webhook"] = json!(inside);
        let (code, refused) = served.post(&format!("/threads/{thread}/runs"), &body).await;
        assert_eq!(code, 422, "{inside}: {refused}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
        let cron = json!({ "assistant_id": "swarm", "schedule": "0 0 1 1 *", "webhook": inside, "input": { "question": "x" } });
        assert_eq!(served.post("/runs/crons", &cron).await.0, 422, "{inside}");
    }
    let (_, runs) = served.get(&format!("/threads/{thread}/runs")).await;
    assert_eq!(runs, json!([]));
}

/// X5
async fn an_agent_receives_the_status_of_its_task(served: Served) {
    let served = served.again_with(&ALLOWED).await;
    let mut receiver = Receiver::answering(&[]).await;
    let url = receiver.url.clone();
    let message = |text: &str, task: Option<&str>| {
        json!({
            "message": { "messageId": format!("m-{text}"), "role": "ROLE_USER", "parts": [{ "text": text }], "taskId": task },
            "configuration": {
                "returnImmediately": true,
                "taskPushNotificationConfig": {
                    "id": "mine", "url": url, "token": "t-1",
                    "authentication": { "scheme": "Bearer", "credentials": "c-1" },
                },
            },
        })
    };
    let (code, sent) = served.post("/a2a/message:send", &message("approve this", None)).await;
    assert_eq!(code, 200, "{sent}");
    let task = sent["task"]["id"].as_str().unwrap().to_owned();
    let heard = ended(&mut receiver).await;
    assert_eq!(heard.body["task"]["id"], task.as_str());
    assert_eq!(heard.body["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(heard.header("x-a2a-notification-token"), "t-1");
    assert_eq!(heard.header("authorization"), "Bearer c-1");
    assert_eq!(heard.header("content-type"), "application/a2a+json");
    let place = format!("/a2a/tasks/{task}/pushNotificationConfigs");
    let (_, listed) = served.get(&place).await;
    assert_eq!(listed["configs"][0]["id"], "mine");
    // The next run of the task tells the same address, named again or not.
    let mut answer = message("approve", Some(&task));
    answer["configuration"]["taskPushNotificationConfig"] = Value::Null;
    served.post("/a2a/message:send", &answer).await;
    let heard = ended(&mut receiver).await;
    assert_eq!(heard.body["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(heard.body["task"]["artifacts"][0]["parts"][0]["text"], "Hello from the star.");
    let rpc = |method: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "taskId": task, "id": "mine" } });
    let (_, got) = served.post("/a2a", &rpc("GetTaskPushNotificationConfig")).await;
    assert_eq!(got["result"]["url"], url.as_str());
    served.post("/a2a", &rpc("DeleteTaskPushNotificationConfig")).await;
    assert_eq!(served.get(&format!("{place}/mine")).await.0, 404);
    let (_, card) = served.get("/.well-known/agent-card.json").await;
    assert_eq!(card["capabilities"]["pushNotifications"], true);
}

/// X5
async fn an_address_that_comes_with_each_message_is_one(served: Served) {
    let served = served.again_with(&ALLOWED).await;
    let mut receiver = Receiver::answering(&[]).await;
    let config = json!({ "url": receiver.url, "token": "t-1" });
    let message = |text: &str, task: Option<&str>| {
        json!({
            "message": { "messageId": format!("m-{text}"), "role": "ROLE_USER", "parts": [{ "text": text }], "taskId": task },
            "configuration": { "taskPushNotificationConfig": config },
        })
    };
    let (_, sent) = served.post("/a2a/message:send", &message("approve this", None)).await;
    let task = sent["task"]["id"].as_str().unwrap();
    ended(&mut receiver).await;
    let (_, sent) = served.post("/a2a/message:send", &message("approve", Some(task))).await;
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    let place = format!("/a2a/tasks/{task}/pushNotificationConfigs");
    let (_, again) = served.post(&place, &config).await;
    let (_, listed) = served.get(&place).await;
    assert_eq!(listed["configs"], json!([again]));
}

/// S2.12, X8
async fn an_agent_receives_the_outcome_of_its_task_after_an_answer_by_another_person(
    served: Served,
) {
    let served = served.again_with(&ALLOWED).await;
    let mut receiver = Receiver::answering(&[]).await;
    for question in ["clarify this", "approve this"] {
        let message = json!({
            "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": question }] },
            "configuration": { "taskPushNotificationConfig": { "url": receiver.url } },
        });
        let (code, sent) = served.post("/a2a/message:send", &message).await;
        assert_eq!(code, 200, "{sent}");
        let task = &sent["task"]["id"];
        let thread = sent["task"]["contextId"].as_str().unwrap();
        let asked = ended(&mut receiver).await;
        assert_eq!(asked.body["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
        match question {
            "clarify this" => {
                served.post(&format!("/threads/{thread}/runs/wait"), &saying("1945")).await;
            }
            _ => {
                let (_, open) = served.get("/v1/approvals").await;
                let id = open[0]["id"].as_str().unwrap();
                served.post(&format!("/v1/approvals/{id}/approve"), &json!({})).await;
            }
        }
        let heard = ended(&mut receiver).await;
        assert_eq!(&heard.body["task"]["id"], task, "{question}");
        assert_eq!(heard.body["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{question}");
        // A turn of somebody else's is no part of the task.
        served.post(&format!("/threads/{thread}/runs/wait"), &saying("hello")).await;
    }
    assert!(receiver.is_empty());
}

/// Returns the next call that says how a task stands at the end of a run; those before say that it continues.
async fn ended(receiver: &mut Receiver) -> Call {
    loop {
        let call = receiver.next().await;
        if call.body["task"].is_object() {
            return call;
        }
        assert_eq!(call.body["statusUpdate"]["status"]["state"], "TASK_STATE_WORKING");
    }
}

/// Returns everything that a database holds beside the threads, as text.
async fn all_rows(served: &Served) -> String {
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    let mut all = String::new();
    for statement in [
        query(
            "SELECT url || CAST(headers AS text) || COALESCE(CAST(payload AS text), '') FROM service_delivery",
        ),
        query("SELECT CAST(config AS text) FROM service_push"),
        query(
            "SELECT CAST(kwargs AS text) || CAST(metadata AS text) || COALESCE(CAST(error AS text), '') \
             FROM service_run",
        ),
        query("SELECT CAST(payload AS text) || CAST(work AS text) FROM service_cron"),
    ] {
        for row in database.fetch_all(&statement).await.unwrap() {
            all.push_str(&row.get::<String>(0).unwrap());
            all.push('\n');
        }
    }
    database.close().await;
    all
}

/// S3.04
async fn secrets_of_addresses_are_not_readable_in_a_database_with_a_key(served: Served) {
    let secrets = [
        "t-secret",
        "c-secret",
        "hook-secret",
        "cron-secret",
        "whose-question",
        "told-by-an-agent",
        "told-by-a-program",
        "noted-by-a-program",
        // Why a run failed.
        "needs a person's approval",
    ];
    let use_all = async |served: &Served, receiver: &Receiver| {
        let message = json!({
            "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "approve this told-by-an-agent" }] },
            "configuration": { "taskPushNotificationConfig": {
                "url": receiver.url, "token": "t-secret",
                "authentication": { "scheme": "Bearer", "credentials": "c-secret" },
            } },
        });
        let (code, sent) = served.post("/a2a/message:send", &message).await;
        assert_eq!(code, 200, "{sent}");
        let mut body = saying("whose-question");
        // It waits for its time, so that its row stays.
        body["after_seconds"] = json!(3_600);
        body["webhook"] = json!(format!("{}?key=hook-secret", receiver.url));
        let thread = served.thread().await;
        assert_eq!(served.post(&format!("/threads/{thread}/runs"), &body).await.0, 200);
        let cron = json!({
            "assistant_id": "swarm", "schedule": "0 0 1 1 *", "input": { "question": "x" },
            "webhook": format!("{}?key=cron-secret", receiver.url),
        });
        assert_eq!(served.post("/runs/crons", &cron).await.0, 200);
        let program = json!({
            "model": "swarm", "input": "hello", "instructions": "told-by-a-program",
            "metadata": { "note": "noted-by-a-program" },
        });
        let (code, response) = served.post("/v1/responses", &program).await;
        assert_eq!(code, 200, "{response}");
        let failed = failed(served).await;
        (sent["task"]["id"].clone(), response["id"].clone(), failed)
    };
    let served = served.again_with(&ALLOWED).await;
    let receiver = Receiver::answering(&[]).await;
    let in_clear = use_all(&served, &receiver).await;
    let rows = all_rows(&served).await;
    for secret in &secrets[2..] {
        assert!(rows.contains(secret), "without a key it stands there: {secret}");
    }
    let key = [
        ("PERIHELION_ENCRYPTION_KEYS", "one=env:TEST_KEY"),
        ("TEST_KEY", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"),
    ];
    let served = served.again_with(&key).await;
    let before = all_rows(&served).await;
    let mut receiver = Receiver::answering(&[503]).await;
    let sealed = use_all(&served, &receiver).await;
    let heard = ended(&mut receiver).await;
    assert_eq!(heard.header("x-a2a-notification-token"), "t-secret");
    let rows = all_rows(&served).await;
    for row in rows.lines().filter(|row| !before.contains(*row)) {
        for secret in secrets {
            assert!(!row.contains(secret), "{secret} can be read: {row}");
        }
    }
    let (_, crons) = served.post("/runs/crons/search", &json!({})).await;
    assert_eq!(crons.as_array().unwrap().len(), 2, "old ones are read as they are: {crons}");
    assert!(crons.to_string().contains("cron-secret"));
    for (task, response, failed) in [in_clear, sealed] {
        let (_, task) = served.get(&format!("/a2a/tasks/{}", task.as_str().unwrap())).await;
        assert!(task["history"].to_string().contains("told-by-an-agent"), "{task}");
        let response = format!("/v1/responses/{}", response.as_str().unwrap());
        let (_, response) = served.get(&response).await;
        assert_eq!(response["instructions"], "told-by-a-program", "{response}");
        assert_eq!(response["metadata"]["note"], "noted-by-a-program", "{response}");
        let (_, left) = served.get(&failed).await;
        assert!(left["__error__"].to_string().contains("needs a person's approval"), "{left}");
    }
}

/// Has a run fail that says which tool it could not call, and returns where its end is shown.
async fn failed(served: &Served) -> String {
    let runs = format!("/threads/{}/runs", served.thread().await);
    let mut skip = saying("approve this");
    skip["approvals"] = json!("skip");
    let (code, run) = served.post(&runs, &skip).await;
    assert_eq!(code, 200, "{run}");
    let join = format!("{runs}/{}/join", run["run_id"].as_str().unwrap());
    served.get(&join).await;
    join
}

/// S2.12: a token that was read from a file with its line end.
async fn credentials_that_no_header_can_have_are_refused(served: Served) {
    let served = served.again_with(&ALLOWED).await;
    let receiver = Receiver::answering(&[]).await;
    let bearer = |text: &str| json!({ "scheme": "Bearer", "credentials": text });
    let url = &receiver.url;
    for (config, is_fine) in [
        (json!({ "url": url, "token": "t-1\n" }), false),
        (json!({ "url": url, "authentication": bearer("c\u{7f}1") }), false),
        (json!({ "url": url, "authentication": bearer("c-\n1") }), false),
        (json!({ "url": url, "token": "t-1", "authentication": bearer("c-1") }), true),
    ] {
        let message = json!({
            "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] },
            "configuration": { "taskPushNotificationConfig": config },
        });
        let (code, reply) = served.post("/a2a/message:send", &message).await;
        assert_eq!(code, if is_fine { 200 } else { 400 }, "{config}: {reply}");
        assert_eq!(reply.to_string().contains("control character"), !is_fine, "{reply}");
    }
}
