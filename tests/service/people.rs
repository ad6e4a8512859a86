//! Who may use the service, and what they see of it (S3.04, S3.09).

use std::time::Duration;

use perihelion_database::{Database, query};
use serde_json::{Value, json};
use uuid::Uuid;

use super::issuer::{Issuer, claims, header};
use super::served::Served;
use super::streams::read;
use super::{on_both, saying};

on_both!(
    a_key_lets_in_until_it_is_revoked_and_its_streams_end_then,
    a_thread_is_invisible_to_another_tenant,
    a_login_needs_its_second_secret_for_what_changes_something,
    an_approval_is_decided_once_by_a_permitted_person_and_recorded,
    a_team_is_changed_and_deleted_by_who_manages_the_tenant,
    looking_is_enough_where_nothing_is_changed_in_every_api,
    a_key_makes_no_key_that_outlives_it,
);

/// How long something may take that is to happen at all.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes a key by the command line.
pub async fn key(served: &Served, args: &[&str]) -> String {
    let made = served.program(&[&["keys", "create"][..], args].concat()).await;
    assert!(made.starts_with("ph_"), "{made}");
    made.trim().to_owned()
}

/// Asks as somebody: with these headers.
pub async fn ask(
    served: &Served,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<Value>,
) -> (u16, Value) {
    let url = format!("{}{path}", served.url);
    let mut asked = served.http.request(method.parse().unwrap(), url);
    for (name, value) in headers {
        asked = asked.header(*name, *value);
    }
    if let Some(body) = body {
        asked = asked.header("content-type", "application/json").body(body.to_string());
    }
    let answer = asked.send().await.unwrap();
    let code = answer.status().as_u16();
    (code, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or(Value::Null))
}

pub fn id(thread: &(u16, Value)) -> String {
    assert_eq!(thread.0, 200, "{thread:?}");
    thread.1["thread_id"].as_str().unwrap().to_owned()
}

/// S3.04
async fn a_key_lets_in_until_it_is_revoked_and_its_streams_end_then(served: Served) {
    // As long as there is no key, no matter who reaches the loopback address is let in, whatever they send.
    let stray = [("x-api-key", "anything")];
    assert_eq!(ask(&served, "GET", "/v1/auth/me", &stray, None).await.1["user"], "local");
    let secret = key(&served, &["reports"]).await;
    let bearer = format!("Bearer {secret}");
    for headers in [&[("x-api-key", secret.as_str())], &[("authorization", bearer.as_str())]] {
        let (code, me) = ask(&served, "GET", "/v1/auth/me", headers, None).await;
        assert_eq!((code, &me["user"], &me["tenant"]), (200, &json!("reports"), &json!("default")));
    }
    let (code, why) = ask(&served, "GET", "/info", &[], None).await;
    assert_eq!(code, 401);
    assert!(why["detail"].as_str().unwrap().contains("x-api-key"), "{why}");
    assert_eq!(ask(&served, "GET", "/info", &stray, None).await.0, 401);

    let headers = [("x-api-key", secret.as_str())];
    let thread = id(&ask(&served, "POST", "/threads", &headers, Some(json!({}))).await);
    // A run that waits for its time keeps its stream open.
    let mut body = saying("hello");
    body["after_seconds"] = json!(3_600);
    let runs = format!("/threads/{thread}/runs");
    let (_, run) = ask(&served, "POST", &runs, &headers, Some(body)).await;
    let at = format!("{runs}/{}", run["run_id"].as_str().unwrap());
    let open = served.http.get(format!("{}{at}/stream", served.url)).header("x-api-key", &secret);
    let stream = open.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let waits = served.http.get(format!("{}{at}/join", served.url)).header("x-api-key", &secret);
    let joined = waits.send().await.unwrap();
    assert_eq!(joined.status(), 200);
    served.program(&["keys", "revoke", "reports"]).await;
    // Its head has come; an end would look like an answer.
    let cut = tokio::time::timeout(PATIENCE, joined.text()).await.unwrap();
    assert!(cut.is_err(), "{cut:?}");
    tokio::time::timeout(PATIENCE, read(stream, usize::MAX)).await.unwrap();
    let (code, why) = ask(&served, "GET", "/info", &headers, None).await;
    assert_eq!(code, 401);
    assert!(why["detail"].as_str().unwrap().contains("revoked"), "{why}");
    assert_eq!(ask(&served, "GET", "/info", &[], None).await.0, 401, "revoking opens nothing");
    let listed = served.program(&["keys", "list"]).await;
    assert!(listed.contains("revoked") && !listed.contains(&secret), "{listed}");
}

/// S3.04
async fn a_thread_is_invisible_to_another_tenant(served: Served) {
    let ours = key(&served, &["ours", "--scopes", "read,run,approve,manage"]).await;
    let theirs = key(&served, &["theirs", "--tenant", "acme"]).await;
    let ours = [("x-api-key", ours.as_str())];
    let theirs = [("x-api-key", theirs.as_str())];
    let thread = id(&ask(&served, "POST", "/threads", &theirs, Some(json!({}))).await);
    let at = |path: &str| format!("/threads/{thread}{path}");
    let (_, run) = ask(&served, "POST", &at("/runs/wait"), &theirs, Some(saying("hello"))).await;
    assert_eq!(run["answer"], "Hello from the star.", "{run}");
    let (_, runs) = ask(&served, "GET", &at("/runs"), &theirs, None).await;
    let run = runs[0]["run_id"].as_str().unwrap();
    for (method, path, body) in [
        ("GET", at(""), None),
        ("GET", at("/state"), None),
        ("GET", at("/history"), None),
        ("GET", at("/runs"), None),
        ("GET", at(&format!("/runs/{run}")), None),
        ("GET", at(&format!("/runs/{run}/stream")), None),
        ("GET", at(&format!("/runs/{run}/join")), None),
        ("GET", format!("/runs/{run}/stream"), None),
        ("GET", format!("/v1/threads/{thread}/trace"), None),
        ("GET", format!("/v1/threads/{thread}/export"), None),
        ("GET", format!("/a2a/tasks/{run}"), None),
        ("POST", at("/runs"), Some(saying("hello"))),
        ("POST", at("/runs/stream"), Some(saying("hello"))),
        ("POST", at("/state"), Some(json!({ "values": { "plan": [] } }))),
        ("POST", at("/copy"), Some(json!({}))),
        ("POST", at(&format!("/runs/{run}/cancel")), Some(json!({}))),
        ("POST", "/runs/cancel".to_owned(), Some(json!({ "thread_id": thread }))),
        ("PATCH", at(""), Some(json!({ "metadata": { "mine": true } }))),
        ("DELETE", at(""), None),
        ("DELETE", at(&format!("/runs/{run}")), None),
    ] {
        let (code, reply) = ask(&served, method, &path, &ours, body).await;
        assert_eq!(code, 404, "{method} {path}: {reply}");
    }
    let taken = json!({ "thread_id": thread });
    assert_eq!(ask(&served, "POST", "/threads", &ours, Some(taken)).await.0, 404);
    let (_, found) = ask(&served, "POST", "/threads/search", &ours, Some(json!({}))).await;
    assert_eq!(found, json!([]));
    let (_, found) = ask(&served, "POST", "/threads/search", &theirs, Some(json!({}))).await;
    assert_eq!(found[0]["thread_id"], json!(thread));
    assert_eq!(found[0]["metadata"].get("mine"), None);
}

/// Returns the cookies that an answer sets, as a browser sends them back.
pub fn cookies(answer: &reqwest::Response) -> String {
    let set = answer.headers().get_all("set-cookie").iter().map(|line| line.to_str().unwrap());
    set.filter_map(|line| line.split(';').next()).collect::<Vec<_>>().join("; ")
}

/// S3.04
async fn a_login_needs_its_second_secret_for_what_changes_something(served: Served) {
    let given = json!({ "name": "Ann", "password": "correct horse" });
    let (code, why) = served.post("/v1/auth/register", &given).await;
    assert_eq!(code, 403, "{why}");
    let served = served.again_with(&[("PERIHELION_SERVE_REGISTRATION", "true")]).await;
    let weak = json!({ "name": "Ann", "password": "short" });
    assert_eq!(served.post("/v1/auth/register", &weak).await.0, 422);
    assert_eq!(served.post("/v1/auth/register", &given).await.0, 200);
    assert_eq!(served.post("/v1/auth/register", &given).await.0, 409);
    let wrong = json!({ "name": "Ann", "password": "wrong horse" });
    assert_eq!(served.post("/v1/auth/login", &wrong).await.0, 401);
    assert_eq!(served.get("/info").await.0, 401, "somebody is known now");

    let login = served.http.post(format!("{}/v1/auth/login", served.url));
    let login = login.header("content-type", "application/json").body(given.to_string());
    let answer = login.send().await.unwrap();
    let lines: Vec<_> = answer.headers().get_all("set-cookie").iter().cloned().collect();
    let flags = lines[0].to_str().unwrap();
    assert!(flags.contains("HttpOnly") && flags.contains("SameSite=Strict"), "{flags}");
    let cookie = cookies(&answer);
    let reply: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let csrf = reply["csrf_token"].as_str().unwrap();
    assert!(cookie.contains(&format!("perihelion_csrf={csrf}")), "{cookie}");

    let shown = [("cookie", cookie.as_str())];
    let whole = [("cookie", cookie.as_str()), ("x-csrf-token", csrf)];
    let other = [("cookie", cookie.as_str()), ("x-csrf-token", "phc_other")];
    let (code, me) = ask(&served, "GET", "/v1/auth/me", &shown, None).await;
    assert_eq!((code, &me["user"], &me["proved_by"]), (200, &json!("ann"), &json!("session")));
    for headers in [&shown[..], &other[..]] {
        let (code, why) = ask(&served, "POST", "/threads", headers, Some(json!({}))).await;
        assert_eq!(code, 403, "{why}");
    }
    assert_eq!(ask(&served, "POST", "/threads", &whole, Some(json!({}))).await.0, 200);

    let more = json!({ "name": "laptop", "scopes": ["manage"] });
    assert_eq!(ask(&served, "POST", "/v1/keys", &whole, Some(more)).await.0, 403);
    let new = json!({ "name": "laptop", "scopes": ["read"] });
    let (code, made) = ask(&served, "POST", "/v1/keys", &whole, Some(new)).await;
    assert_eq!(code, 200, "{made}");
    let own = [("x-api-key", made["key"].as_str().unwrap())];
    assert_eq!(ask(&served, "GET", "/v1/auth/me", &own, None).await.1["user"], "ann");
    let (code, why) = ask(&served, "POST", "/threads", &own, Some(json!({}))).await;
    assert_eq!(code, 403, "it may only read: {why}");
    let (_, keys) = ask(&served, "GET", "/v1/keys", &shown, None).await;
    assert_eq!(keys["keys"][0]["name"], "laptop");
    assert_eq!(ask(&served, "DELETE", "/v1/keys/laptop", &whole, None).await.0, 204);
    assert_eq!(ask(&served, "GET", "/info", &own, None).await.0, 401);

    assert_eq!(ask(&served, "POST", "/v1/auth/logout", &whole, None).await.0, 204);
    assert_eq!(ask(&served, "GET", "/v1/auth/me", &shown, None).await.0, 401);
}

/// S3.09
async fn an_approval_is_decided_once_by_a_permitted_person_and_recorded(served: Served) {
    let boss = key(&served, &["boss", "--scopes", "read,run,approve,manage"]).await;
    let worker = key(&served, &["worker", "--scopes", "read,run"]).await;
    let boss = [("x-api-key", boss.as_str())];
    let worker = [("x-api-key", worker.as_str())];
    let mut decided = Vec::new();
    for by in ["api", "command line", "resume"] {
        let thread = id(&ask(&served, "POST", "/threads", &worker, Some(json!({}))).await);
        let wait = format!("/threads/{thread}/runs/wait");
        ask(&served, "POST", &wait, &worker, Some(saying("approve this"))).await;
        let (_, listed) = ask(&served, "GET", "/v1/approvals", &worker, None).await;
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
        let one = listed[0]["id"].as_str().unwrap().to_owned();
        let approve = format!("/v1/approvals/{one}/approve");
        assert_eq!(ask(&served, "POST", &approve, &worker, Some(json!({}))).await.0, 403);
        let resume = json!({ "assistant_id": "swarm", "command": { "resume": { "decisions": [{ "type": "approve" }] } } });
        let (code, why) = ask(&served, "POST", &wait, &worker, Some(resume.clone())).await;
        assert_eq!(code, 403, "{why}");
        match by {
            "api" => {
                let (code, reply) = ask(&served, "POST", &approve, &boss, Some(json!({}))).await;
                assert_eq!(code, 200, "{reply}");
                let run = reply["run_id"].as_str().unwrap();
                let join = format!("/threads/{thread}/runs/{run}/join");
                let (_, left) = ask(&served, "GET", &join, &worker, None).await;
                assert_eq!(left["answer"], "Hello from the star.", "{left}");
            }
            "command line" => {
                let shown = served.program(&["approvals", "show", &one]).await;
                assert!(shown.contains("append_note") && shown.contains("remember"), "{shown}");
                let answer = served.program(&["approvals", "approve", &one, "-q"]).await;
                assert_eq!(answer, "Hello from the star.\n");
            }
            _ => {
                let (_, left) = ask(&served, "POST", &wait, &boss, Some(resume)).await;
                assert_eq!(left["answer"], "Hello from the star.", "{left}");
            }
        }
        let (code, why) = ask(&served, "POST", &approve, &boss, Some(json!({}))).await;
        assert_eq!(code, 409, "{why}");
        let late = served.refused(&["approvals", "deny", &one]).await;
        assert!(late.contains("no pending request has this ID"), "{late}");
        decided.push((thread, one));
    }
    for ((thread, id), actor) in decided.iter().zip(["boss", "tester", "boss"]) {
        let at = format!("/v1/audit?thread={thread}");
        assert_eq!(ask(&served, "GET", &at, &worker, None).await.0, 403);
        let (_, audit) = ask(&served, "GET", &at, &boss, None).await;
        let all = audit["entries"].as_array().unwrap().iter();
        let is_decision = |one: &&Value| one["action"].as_str().unwrap().starts_with("approval.");
        let decisions: Vec<&Value> = all.filter(is_decision).collect();
        let [entry] = decisions.as_slice() else { panic!("{audit}") };
        assert_eq!(entry["action"], "approval.approved");
        assert_eq!((&entry["actor"], &entry["subject"]), (&json!(actor), &json!(id)));
        assert!(entry["at"].is_string() && !entry.to_string().contains("remember"), "{entry}");
    }
}

/// S3.04
#[tokio::test]
async fn tokens_of_the_issuer_are_accepted_and_foreign_tokens_are_refused() {
    let issuer = Issuer::start().await;
    let stranger = Issuer::start().await;
    let served = Served::sqlite().await;
    let served = served.again_with(&[("PERIHELION_SERVE_JWT", &issuer.settings())]).await;
    let soon = perihelion::clock::now().timestamp() + 600;
    let good = issuer.token(&header(), &claims(soon));
    let (code, me) = ask(&served, "GET", "/v1/auth/me", &[("authorization", &good)], None).await;
    assert_eq!((code, &me["user"], &me["tenant"]), (200, &json!("ann"), &json!("acme")), "{me}");
    let mut elsewhere = claims(soon);
    elsewhere["aud"] = json!("another");
    for bad in [
        stranger.token(&header(), &claims(soon)),
        issuer.token(&header(), &elsewhere),
        issuer.token(&header(), &claims(soon - 6_000)),
        "Bearer a.b.c".to_owned(),
    ] {
        let (code, why) = ask(&served, "GET", "/info", &[("authorization", &bad)], None).await;
        assert_eq!(code, 401, "{why}");
    }
    assert_eq!(ask(&served, "GET", "/info", &[], None).await.0, 401);
}

/// S3.04: anybody could register the name of the token's user, and read what is theirs.
#[tokio::test]
async fn beside_another_issuer_no_caller_registers_and_a_disabled_user_is_refused() {
    let issuer = Issuer::start().await;
    let settings = issuer.settings();
    let served = Served::sqlite().await;
    let more =
        [("PERIHELION_SERVE_JWT", settings.as_str()), ("PERIHELION_SERVE_REGISTRATION", "true")];
    let served = served.again_with(&more).await;
    let given = json!({ "name": "ann", "password": "correct horse" });
    let (code, why) = served.post("/v1/auth/register", &given).await;
    assert!(code == 403 && why.to_string().contains("issuer"), "{code}: {why}");
    assert_eq!(served.get("/v1/auth/ways").await.1["registration"], false);
    let token = issuer.token(&header(), &claims(perihelion::clock::now().timestamp() + 600));
    let who = [("authorization", token.as_str())];
    assert_eq!(ask(&served, "GET", "/info", &who, None).await.0, 200);
    let database = Database::open(&served.database()).await.unwrap().of_tenant("acme");
    let disabled = query(
        "INSERT INTO person (id, tenant, name, password, scopes, created_at, disabled_at) \
         VALUES ($1, 'acme', 'ann', '', '', $2, $2)",
    );
    let disabled = disabled.binds((Uuid::now_v7(), perihelion::clock::now()));
    database.execute(&disabled).await.unwrap();
    database.close().await;
    let (code, why) = ask(&served, "GET", "/info", &who, None).await;
    assert!(code == 401 && why.to_string().contains("disabled"), "{code}: {why}");
}

/// S3.04
async fn a_team_is_changed_and_deleted_by_who_manages_the_tenant(served: Served) {
    let boss = key(&served, &["boss", "--scopes", "read,run,manage"]).await;
    let worker = key(&served, &["worker", "--scopes", "read,run,approve"]).await;
    let boss = [("x-api-key", boss.as_str())];
    let worker = [("x-api-key", worker.as_str())];
    let agents = json!([
        { "name": "clerk", "role": "writer of notes", "goal": "Notes facts.", "servers": ["notes"] },
    ]);
    let design = json!({ "name": "clerks", "description": "Keeps notes.", "agents": agents });
    let design = Some(json!({ "design": design }));
    let goal = Some(json!({ "goal": "keep notes", "save": true }));
    for body in [&design, &goal] {
        let (code, why) = ask(&served, "POST", "/v1/teams", &worker, body.clone()).await;
        assert_eq!(code, 403, "{why}");
    }
    let (code, why) = ask(&served, "POST", "/v1/teams", &boss, design).await;
    assert_eq!(code, 200, "{why}");
    for (who, code) in [(&worker, 403), (&boss, 204)] {
        let (found, why) = ask(&served, "DELETE", "/v1/teams/clerks", who, None).await;
        assert_eq!(found, code, "{why}");
    }
}

/// S3.04
async fn looking_is_enough_where_nothing_is_changed_in_every_api(served: Served) {
    let reads = key(&served, &["reads", "--scopes", "read"]).await;
    let runs = key(&served, &["runs", "--scopes", "read,run"]).await;
    let accept = ("accept", "application/json, text/event-stream");
    let reads = [("x-api-key", reads.as_str()), ("a2a-version", "1.0"), accept];
    let runs = [("x-api-key", runs.as_str()), ("a2a-version", "1.0"), accept];
    let rpc = |method: &str, params: Value| {
        Some(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
    };
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] });
    let message = json!({ "message": message });
    let (_, sent) = ask(&served, "POST", "/a2a", &runs, rpc("SendMessage", message.clone())).await;
    let task = &sent["result"]["task"]["id"];
    assert!(task.is_string(), "{sent}");
    for (method, params) in [("GetTask", json!({ "id": task })), ("ListTasks", json!({}))] {
        let (code, reply) = ask(&served, "POST", "/a2a", &reads, rpc(method, params)).await;
        assert!(code == 200 && reply["result"].is_object(), "{method}: {code} {reply}");
    }
    let id = json!({ "id": task });
    let of_task = json!({ "taskId": task, "id": "x", "url": "https://hers.example.com/" });
    for (method, params) in [
        ("SendMessage", message.clone()),
        ("SendStreamingMessage", message),
        ("CancelTask", id),
        ("CreateTaskPushNotificationConfig", of_task.clone()),
        ("DeleteTaskPushNotificationConfig", of_task),
    ] {
        let (_, reply) = ask(&served, "POST", "/a2a", &reads, rpc(method, params)).await;
        let why = reply["error"]["message"].as_str().unwrap_or_default();
        assert!(why.contains("scope: run"), "{method}: {reply}");
    }
    let mcp = async |who: &[(&str, &str)], body: Option<Value>| {
        let mut asked = served.http.post(format!("{}/mcp", served.url));
        for (name, value) in who {
            asked = asked.header(*name, *value);
        }
        let asked = asked.header("content-type", "application/json");
        let answer = asked.body(body.unwrap().to_string()).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let (code, listed) = mcp(&reads, rpc("tools/list", json!({}))).await;
    assert!(code == 200 && listed.contains("swarm"), "{code} {listed}");
    let call = json!({ "name": "swarm", "arguments": { "question": "hello" } });
    let (_, refused) = mcp(&reads, rpc("tools/call", call.clone())).await;
    assert!(refused.contains("scope: run"), "{refused}");
    let (_, answered) = mcp(&runs, rpc("tools/call", call)).await;
    assert!(answered.contains("Hello from the star."), "{answered}");
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(mcp(&reads, Some(cancelled)).await.0, 403);
}

/// S3.04
async fn a_key_makes_no_key_that_outlives_it(served: Served) {
    let first = key(&served, &["ci", "--expires", "1d"]).await;
    let make = async |with: &str, name: &str| {
        let headers = [("x-api-key", with)];
        let body = json!({ "name": name, "expires_at": "2999-01-01T00:00:00Z" });
        let (code, made) = ask(&served, "POST", "/v1/keys", &headers, Some(body)).await;
        assert_eq!(code, 200, "{made}");
        made
    };
    let second = make(&first, "second").await;
    let third = make(second["key"].as_str().unwrap(), "third").await;
    let tomorrow = perihelion::clock::now() + chrono::TimeDelta::days(2);
    for made in [&second, &third] {
        let ends = made["expires_at"].as_str().unwrap();
        assert!(ends.parse::<chrono::DateTime<chrono::Utc>>().unwrap() < tomorrow, "{made}");
    }
    assert_eq!(third["made_by"], second["id"], "lists show where it comes from");
    served.program(&["keys", "revoke", "ci"]).await;
    for made in [&second, &third] {
        let headers = [("x-api-key", made["key"].as_str().unwrap())];
        assert_eq!(ask(&served, "GET", "/info", &headers, None).await.0, 401, "{made}");
    }
}
