//! Who acts as whom: what is remembered of a user is shown to that user's runs alone (S3.03, S3.04).

use perihelion_database::{Database, query};
use serde_json::{Value, json};

use super::people::{ask, cookies, id, key};
use super::served::Served;
use super::{on_both, saying};

on_both!(
    no_caller_acts_as_another_user_in_any_api,
    a_thread_stays_the_user_s_who_began_it,
    a_key_that_may_act_for_users_names_them,
    keys_of_a_disabled_user_are_refused,
);

/// What is remembered of Ann, and shown to nobody else's run.
const SECRET: &str = "Brno";

/// What somebody sends with each request.
pub type Headers = Vec<(&'static str, String)>;

/// Asks as somebody.
pub async fn sent_as(
    served: &Served,
    who: &Headers,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let headers: Vec<(&str, &str)> =
        who.iter().map(|(name, value)| (*name, value.as_str())).collect();
    ask(served, method, path, &headers, body).await
}

pub fn by_key(key: &str) -> Headers {
    vec![("x-api-key", key.to_owned())]
}

/// Registers somebody, and returns what their browser sends.
async fn registered(served: &Served, name: &str) -> Headers {
    let given = json!({ "name": name, "password": "correct horse" }).to_string();
    let asked = served.http.post(format!("{}/v1/auth/register", served.url));
    let answer = asked.header("content-type", "application/json").body(given).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let cookie = cookies(&answer);
    let about: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let csrf = about["csrf_token"].as_str().unwrap().to_owned();
    vec![("cookie", cookie), ("x-csrf-token", csrf)]
}

/// A server that knows Ann, of whom it remembers something, and Bob.
pub async fn with_ann_and_bob(served: Served) -> (Served, Headers, Headers) {
    served.program(&["memory", "set", "city", SECRET, "--user", "ann"]).await;
    let served = served.again_with(&[("PERIHELION_SERVE_REGISTRATION", "true")]).await;
    let ann = registered(&served, "ann").await;
    let bob = registered(&served, "bob").await;
    (served, ann, bob)
}

/// Returns how many requests to the model showed what is remembered of Ann.
fn shown(served: &Served) -> usize {
    let requests = served.model.requests();
    // What learns from a run continues beside it.
    requests.iter().filter(|one| one.role != "extractor" && one.contains(SECRET)).count()
}

/// Asks the star as an MCP client, and returns all that came back.
async fn by_mcp(served: &Served, who: &Headers, arguments: Value) -> String {
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "swarm", "arguments": arguments },
    });
    let mut asked = served
        .http
        .post(format!("{}/mcp", served.url))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-06-18")
        .body(call.to_string());
    for (name, value) in who {
        asked = asked.header(*name, value);
    }
    asked.send().await.unwrap().text().await.unwrap()
}

fn with_input(input: Value) -> Value {
    json!({ "assistant_id": "swarm", "input": input })
}

fn to_task(more: Value) -> Value {
    let mut message =
        json!({ "role": "ROLE_USER", "messageId": "m", "parts": [{ "text": "hello" }] });
    for (name, value) in more.as_object().unwrap() {
        message[name] = value.clone();
    }
    json!({ "message": message })
}

/// S3.03, S3.04: a session, a key that a user made, and a key without the scope `act_as`.
async fn no_caller_acts_as_another_user_in_any_api(served: Served) {
    let (served, ann, bob) = with_ann_and_bob(served).await;
    let new = json!({ "name": "laptop" });
    let (_, laptop) = sent_as(&served, &bob, "POST", "/v1/keys", Some(new)).await;
    let laptop = by_key(laptop["key"].as_str().unwrap());
    let plain = by_key(&key(&served, &["plain", "--scopes", "read,run,approve,manage"]).await);
    let question = json!({ "question": "hello", "user": "ann" });
    let messages = json!({ "messages": [{ "role": "user", "content": "hello" }], "user": "ann" });
    for who in [&bob, &laptop, &plain] {
        let thread = id(&sent_as(&served, who, "POST", "/threads", Some(json!({}))).await);
        let at = |path: &str| format!("/threads/{thread}{path}");
        let schedule =
            json!({ "schedule": "0 0 1 1 *", "assistant_id": "swarm", "input": question });
        let update = json!({ "assistant_id": "swarm", "command": { "update": { "user": "ann" } } });
        let steps = json!({ "supersteps": [{ "updates": [{ "values": { "user": "ann" }, "as_node": "qa" }] }] });
        let openai = json!({ "model": "swarm", "input": "hello", "metadata": { "user": "ann" } });
        let chat = json!({
            "model": "swarm", "messages": [{ "role": "user", "content": "hello" }], "metadata": { "user": "ann" },
        });
        for (method, path, body) in [
            ("GET", "/v1/memory?user=ann".to_owned(), None),
            ("DELETE", "/v1/memory/city?user=ann".to_owned(), None),
            ("POST", "/runs/wait".to_owned(), Some(with_input(question.clone()))),
            ("POST", "/runs/wait".to_owned(), Some(with_input(messages.clone()))),
            ("POST", "/runs/stream".to_owned(), Some(with_input(messages.clone()))),
            ("POST", at("/runs"), Some(with_input(question.clone()))),
            ("POST", at("/runs/wait"), Some(update)),
            ("POST", at("/state"), Some(json!({ "values": { "user": "ann" } }))),
            ("POST", "/threads".to_owned(), Some(steps)),
            ("POST", "/runs/crons".to_owned(), Some(schedule.clone())),
            ("POST", at("/runs/crons"), Some(schedule)),
            ("POST", "/v1/responses".to_owned(), Some(openai)),
            ("POST", "/v1/chat/completions".to_owned(), Some(chat)),
        ] {
            let (code, why) = sent_as(&served, who, method, &path, body).await;
            assert!([403, 422].contains(&code), "{method} {path}: {code} {why}");
        }
        let start =
            json!({ "id": 1, "method": "run.start", "params": with_input(question.clone()) });
        let (_, why) = sent_as(&served, who, "POST", &at("/commands"), Some(start)).await;
        assert_eq!(why["type"], "error", "{why}");
        let mut versioned = who.clone();
        versioned.push(("a2a-version", "1.0".to_owned()));
        let task = to_task(json!({ "metadata": { "user": "ann" } }));
        let (code, why) =
            sent_as(&served, &versioned, "POST", "/a2a/message:send", Some(task)).await;
        assert!((400..500).contains(&code), "{code} {why}");
        let why = by_mcp(&served, who, json!({ "question": "hello", "user": "ann" })).await;
        assert!(why.contains("act_as"), "{why}");
        // What servers of others name users by is nothing here.
        let mut other = saying("hello");
        other["config"] = json!({ "configurable": { "user": "ann", "user_id": "ann", "langgraph_auth_user_id": "ann" } });
        let (code, done) = sent_as(&served, who, "POST", "/runs/wait", Some(other)).await;
        assert_eq!((code, &done["answer"]), (200, &json!("Hello from the star.")), "{done}");
    }
    assert_eq!(shown(&served), 0, "somebody else's run was shown what is remembered of Ann");
    let (code, own) = sent_as(&served, &ann, "GET", "/v1/memory", None).await;
    assert_eq!((code, &own["memories"][0]["value"]), (200, &json!(SECRET)), "{own}");
    let (_, own) = sent_as(&served, &bob, "GET", "/v1/memory", None).await;
    assert_eq!(own["memories"], json!([]));
    assert_eq!(sent_as(&served, &ann, "GET", "/v1/memory?user=ann", None).await.0, 200);
    let (_, done) = sent_as(&served, &ann, "POST", "/runs/wait", Some(saying("hello"))).await;
    assert_eq!((&done["answer"], &done["user"]), (&json!("Hello from the star."), &json!("ann")));
    assert!(shown(&served) > 0, "Ann's own run was shown nothing");
}

/// S3.03, S3.04
async fn a_thread_stays_the_user_s_who_began_it(served: Served) {
    let (served, ann, bob) = with_ann_and_bob(served).await;
    let plain = by_key(&key(&served, &["plain", "--scopes", "read,run,approve,manage"]).await);
    let thread = id(&sent_as(&served, &ann, "POST", "/threads", Some(json!({}))).await);
    let wait = |thread: &str| format!("/threads/{thread}/runs/wait");
    let (code, _) = sent_as(&served, &bob, "POST", &wait(&thread), Some(saying("hello"))).await;
    assert_eq!(code, 403, "it is Ann's before anything is said in it");
    let (_, done) = sent_as(&served, &ann, "POST", &wait(&thread), Some(saying("hello"))).await;
    assert_eq!(done["answer"], "Hello from the star.", "{done}");
    let shown_before = shown(&served);
    assert!(shown_before > 0);
    for who in [&bob, &plain] {
        let path = format!("/threads/{thread}/copy");
        let copy = id(&sent_as(&served, who, "POST", &path, Some(json!({}))).await);
        let (code, file) =
            sent_as(&served, who, "GET", &format!("/v1/threads/{thread}/export"), None).await;
        assert_eq!(code, 200, "{file}");
        for thread in [&thread, &copy] {
            let at = |path: &str| format!("/threads/{thread}{path}");
            let responses =
                json!({ "model": "swarm", "input": "hello", "metadata": { "thread_id": thread } });
            let chat = json!({
                "model": "swarm", "messages": [{ "role": "user", "content": "hello" }],
                "metadata": { "thread_id": thread },
            });
            let resuming = json!({ "assistant_id": "swarm", "input": null });
            let schedule = json!({ "schedule": "0 0 1 1 *", "assistant_id": "swarm", "input": { "question": "hello" } });
            for (path, body) in [
                (at("/runs/wait"), saying("hello")),
                (at("/runs/wait"), resuming),
                (at("/runs/stream"), saying("hello")),
                (at("/runs/crons"), schedule),
                (at("/state"), json!({ "values": { "input_request": "where do I live?" } })),
                ("/v1/responses".to_owned(), responses),
                ("/v1/chat/completions".to_owned(), chat),
            ] {
                let (code, why) = sent_as(&served, who, "POST", &path, Some(body)).await;
                assert_eq!(code, 403, "{path}: {why}");
            }
            let inject = json!({ "message": { "type": "human", "content": "where do I live?" } });
            let start = json!({ "id": 1, "method": "input.inject", "params": inject });
            let (_, why) = sent_as(&served, who, "POST", &at("/commands"), Some(start)).await;
            assert_eq!(why["type"], "error", "{why}");
            let mut versioned = who.clone();
            versioned.push(("a2a-version", "1.0".to_owned()));
            let task = to_task(json!({ "contextId": thread }));
            let (code, why) =
                sent_as(&served, &versioned, "POST", "/a2a/message:send", Some(task)).await;
            assert!((400..500).contains(&code), "{code} {why}");
            let why = by_mcp(&served, who, json!({ "question": "hi", "thread_id": thread })).await;
            assert!(why.contains("another user"), "{why}");
        }
    }
    assert_eq!(shown(&served), shown_before);
    // Who may decide calls decides hers all the same.
    let thread = id(&sent_as(&served, &ann, "POST", "/threads", Some(json!({}))).await);
    let (_, asked) =
        sent_as(&served, &ann, "POST", &wait(&thread), Some(saying("approve this"))).await;
    assert!(asked["__interrupt__"].is_array(), "{asked}");
    let (_, waiting) = sent_as(&served, &plain, "GET", "/v1/approvals", None).await;
    let one = waiting.as_array().unwrap().iter().find(|one| one["thread_id"] == thread.as_str());
    let approve = format!("/v1/approvals/{}/approve", one.unwrap()["id"].as_str().unwrap());
    let (code, decided) = sent_as(&served, &plain, "POST", &approve, Some(json!({}))).await;
    assert_eq!(code, 200, "{decided}");
    let join = format!("/threads/{thread}/runs/{}/join", decided["run_id"].as_str().unwrap());
    let (_, left) = sent_as(&served, &ann, "GET", &join, None).await;
    assert_eq!(left["answer"], "Hello from the star.", "{left}");
}

/// S3.03, S3.04
async fn a_key_that_may_act_for_users_names_them(served: Served) {
    let (served, _, bob) = with_ann_and_bob(served).await;
    let backend = by_key(&key(&served, &["backend", "--scopes", "read,run,act_as"]).await);
    let thread = id(&sent_as(&served, &backend, "POST", "/threads", Some(json!({}))).await);
    let wait = format!("/threads/{thread}/runs/wait");
    let as_user = |name: &str| with_input(json!({ "question": "hello", "user": name }));
    let (code, done) = sent_as(&served, &backend, "POST", &wait, Some(as_user("ann"))).await;
    assert_eq!((code, &done["user"]), (200, &json!("ann")), "{done}");
    let seen = shown(&served);
    assert!(seen > 0, "the run was shown nothing");
    let (code, why) = sent_as(&served, &backend, "POST", &wait, Some(as_user("bob"))).await;
    assert_eq!(code, 403, "{why}");
    assert_eq!(sent_as(&served, &bob, "POST", &wait, Some(saying("hello"))).await.0, 403);
    let (_, done) = sent_as(&served, &backend, "POST", &wait, Some(saying("hello"))).await;
    assert_eq!(done["user"], "ann", "{done}");
    let (_, listed) = sent_as(&served, &backend, "GET", "/v1/memory?user=ann", None).await;
    assert_eq!(listed["memories"][0]["value"], SECRET);
    let openai = json!({ "model": "swarm", "input": "hello", "metadata": { "user": "ann" } });
    let seen = shown(&served);
    assert_eq!(sent_as(&served, &backend, "POST", "/v1/responses", Some(openai)).await.0, 200);
    assert!(shown(&served) > seen);
    let seen = shown(&served);
    by_mcp(&served, &backend, json!({ "question": "hello", "user": "ann" })).await;
    assert!(shown(&served) > seen);
    // Whom a key of such a key may act for is whom it may act for; a user's key never may.
    let new = json!({ "name": "second", "scopes": ["read", "run", "act_as"] });
    let (code, _) = sent_as(&served, &backend, "POST", "/v1/keys", Some(new.clone())).await;
    assert_eq!(code, 200);
    assert_eq!(sent_as(&served, &bob, "POST", "/v1/keys", Some(new)).await.0, 403);
    let bobs =
        by_key(&key(&served, &["bobs", "--user", "bob", "--scopes", "read,run,act_as"]).await);
    let (code, _) = sent_as(&served, &bobs, "POST", "/runs/wait", Some(as_user("ann"))).await;
    assert_eq!(code, 403);
}

/// S3.04
async fn keys_of_a_disabled_user_are_refused(served: Served) {
    let (served, _, bob) = with_ann_and_bob(served).await;
    let new = json!({ "name": "laptop" });
    let (_, laptop) = sent_as(&served, &bob, "POST", "/v1/keys", Some(new)).await;
    let laptop = by_key(laptop["key"].as_str().unwrap());
    assert_eq!(sent_as(&served, &laptop, "GET", "/info", None).await.0, 200);
    let boss = by_key(&key(&served, &["boss", "--scopes", "read,manage"]).await);
    let thread = id(&sent_as(&served, &bob, "POST", "/threads", Some(json!({}))).await);
    let runs = format!("/threads/{thread}/runs");
    let later = json!({ "assistant_id": "swarm", "input": { "question": "hello" }, "after_seconds": 3_600 });
    let (_, run) = sent_as(&served, &bob, "POST", &runs, Some(later)).await;
    let run = format!("{runs}/{}", run["run_id"].as_str().unwrap());
    served.program(&["users", "disable", "bob"]).await;
    assert_eq!(sent_as(&served, &laptop, "GET", "/info", None).await.0, 401);
    assert_eq!(sent_as(&served, &bob, "GET", "/info", None).await.0, 401);
    let (_, listed) = sent_as(&served, &boss, "GET", "/v1/keys", None).await;
    let disabled = |name: &str| {
        let mut keys = listed["keys"].as_array().unwrap().iter();
        keys.find(|key| key["name"] == name).unwrap()["user_disabled"].clone()
    };
    assert_eq!([disabled("laptop"), disabled("boss")], [true, false]);
    // All of it at once: what waited has ended, and the audit has it.
    let (_, ended) = sent_as(&served, &boss, "GET", &run, None).await;
    assert_eq!(ended["status"], "interrupted", "{ended}");
    let (_, audit) = sent_as(&served, &boss, "GET", "/v1/audit", None).await;
    let of_bob = |one: &&Value| one["action"] == "user.disabled" && one["subject"] == "bob";
    assert_eq!(audit["entries"].as_array().unwrap().iter().filter(of_bob).count(), 1, "{audit}");
    served.program(&["users", "disable", "bob"]).await;
    assert!(served.refused(&["users", "disable", "eve"]).await.contains("no user of this name"));
}

/// S3.03, S3.04: it would be anyone's.
#[tokio::test]
async fn a_thread_that_cannot_be_given_to_its_user_does_not_stay() {
    let (served, ann, _) = with_ann_and_bob(Served::sqlite().await).await;
    let listed = async || {
        let (code, found) =
            sent_as(&served, &ann, "POST", "/threads/search", Some(json!({}))).await;
        assert_eq!(code, 200, "{found}");
        let ids = found.as_array().unwrap().iter().map(|one| one["thread_id"].clone());
        ids.collect::<Vec<_>>()
    };
    let thread = id(&sent_as(&served, &ann, "POST", "/threads", Some(json!({}))).await);
    let before = listed().await;
    assert_eq!(before, [json!(thread)]);
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON service_thread WHEN new.user_id IS NOT NULL \
        BEGIN SELECT RAISE(ABORT, 'no owner'); END";
    let database = Database::open(&served.database()).await.unwrap();
    database.execute(&query(refuse)).await.unwrap();
    database.close().await;
    let named = json!({ "metadata": { "title": "mine" } });
    let copied = format!("/threads/{thread}/copy");
    for (path, body) in [("/threads", json!({})), ("/threads", named), (copied.as_str(), json!({}))]
    {
        let (code, why) = sent_as(&served, &ann, "POST", path, Some(body)).await;
        assert!(code >= 400, "{path}: {code} {why}");
        assert_eq!(listed().await, before, "{path}: {why}");
    }
}
