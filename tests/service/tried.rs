//! What people try and set up before they ask: calls of tools, the model, users (S3.13, S3.04).

use serde_json::{Value, json};

use super::on_both;
use super::people::{ask, key};
use super::served::Served;
use super::tenants::library;

on_both!(
    a_tool_is_called_once_by_who_may_for_their_tenant_and_is_recorded,
    an_operator_checks_that_the_model_answers,
    a_manager_adds_users_with_their_own_scopes_at_most,
);

const SERVERS: &str = r#"
[mcp_servers.notes]
command = "perihelion"
args = ["mcp", "notes", "--file", "notes.jsonl"]
open_world = false
default_tools_approval_mode = "prompt"

[mcp_servers.diary]
command = "perihelion"
args = ["mcp", "notes", "--file", "notes.jsonl"]
open_world = false
"#;

/// S3.13, S3.09
async fn a_tool_is_called_once_by_who_may_for_their_tenant_and_is_recorded(served: Served) {
    served.write("mcp-servers.toml", &format!("{SERVERS}{}", library(&served)));
    let served = served.again_with(&[]).await;
    served.until_got("/v1/agents", |found| found["agents"].as_array().unwrap().len() == 3).await;
    let boss = key(&served, &["boss", "--scopes", "read,run,approve,manage"]).await;
    let worker = key(&served, &["worker", "--scopes", "read,run"]).await;
    let theirs =
        key(&served, &["theirs", "--tenant", "acme", "--scopes", "read,run,approve,manage"]).await;
    let call = async |who: &str, agent: &str, tool: &str, arguments: Value| {
        let path = format!("/v1/agents/{agent}/tools/{tool}");
        let body = Some(json!({ "arguments": arguments }));
        ask(&served, "POST", &path, &[("x-api-key", who)], body).await
    };
    let note = json!({ "text": "remember" });
    for refused in ["append_note", "list_notes"] {
        let (code, why) = call(&worker, "notes", refused, note.clone()).await;
        assert_eq!(code, 403, "{refused} needs an approval: {why}");
    }
    assert_eq!(call(&worker, "diary", "append_note", note.clone()).await.0, 403, "it writes");
    let (code, wrong) = call(&boss, "notes", "append_note", json!({ "text": 7 })).await;
    assert!(code == 422 && wrong["detail"].as_str().unwrap().contains("/text"), "{wrong}");
    for (agent, tool) in [("notes", "burn"), ("nobody", "append_note")] {
        assert_eq!(call(&boss, agent, tool, note.clone()).await.0, 404);
    }
    assert_eq!(served.read("notes.jsonl"), "");
    let (code, done) = call(&boss, "mcp_agent_notes", "append_note", note).await;
    assert!(code == 200 && done["is_error"] == false && done["ms"].is_u64(), "{done}");
    assert_eq!(served.read("notes.jsonl").lines().count(), 1);
    let (code, read) = call(&worker, "diary", "list_notes", json!({})).await;
    assert!(code == 200 && read["result"].to_string().contains("remember"), "{read}");

    let minutes = json!({ "title": "Minutes", "text": "# Minutes\n\nThe budget was approved.\n" });
    let (code, added) = call(&theirs, "library", "add_document", minutes).await;
    assert!(code == 200 && added["is_error"] == false, "{added}");
    for (who, count, calls) in [
        (&theirs, 1, json!(["library.add_document"])),
        (&boss, 0, json!(["diary.list_notes", "notes.append_note"])),
    ] {
        let who = [("x-api-key", who.as_str())];
        let (_, listed) = ask(&served, "GET", "/v1/documents", &who, None).await;
        assert_eq!(listed["documents"].as_array().unwrap().len(), count, "{listed}");
        let (_, audit) = ask(&served, "GET", "/v1/audit", &who, None).await;
        let entries = audit["entries"].as_array().unwrap().iter();
        let called = entries.filter(|entry| entry["action"] == "tool.called");
        let subjects: Value = called.map(|entry| entry["subject"].clone()).collect();
        assert_eq!(subjects, calls, "{audit}");
    }
}

/// S3.13, S3.04
async fn an_operator_checks_that_the_model_answers(served: Served) {
    let check = "/v1/fleet/check-model";
    let (code, good) = served.post(check, &json!({})).await;
    assert_eq!((code, &good), (200, &json!({ "answers": true, "problem": null })));
    assert_eq!(served.model.requests().len(), 1);
    let served = served.again_with(&[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")]).await;
    let (code, bad) = served.post(check, &json!({})).await;
    assert_eq!((code, &bad["answers"]), (200, &json!(false)));
    assert!(bad["problem"].as_str().unwrap().contains("cannot reach"), "{bad}");
    let boss = key(&served, &["boss", "--scopes", "read,run,approve,manage"]).await;
    let boss = [("x-api-key", boss.as_str())];
    assert_eq!(ask(&served, "POST", check, &boss, Some(json!({}))).await.0, 403);
}

/// S3.04
async fn a_manager_adds_users_with_their_own_scopes_at_most(served: Served) {
    let boss = key(&served, &["boss", "--scopes", "read,run,approve,manage"]).await;
    let worker = key(&served, &["worker", "--scopes", "read,run,approve"]).await;
    let theirs = key(&served, &["theirs", "--tenant", "acme", "--scopes", "read,run,manage"]).await;
    let add = async |who: &str, user: Value| {
        ask(&served, "POST", "/v1/users", &[("x-api-key", who)], Some(user)).await
    };
    let ann = json!({ "name": "Ann", "password": "correct horse" });
    for body in [ann.clone(), json!({ "nickname": "Ann" })] {
        assert_eq!(add(&worker, body).await.0, 403);
    }
    let (code, added) = add(&boss, ann.clone()).await;
    assert_eq!((code, &added["name"]), (200, &json!("ann")), "{added}");
    assert_eq!(added["scopes"], json!(["read", "run", "approve"]));
    assert!(!added.to_string().contains("horse"), "{added}");
    assert_eq!(add(&boss, ann.clone()).await.0, 409);
    for (scopes, refused) in [("operate", 403), ("act_as", 403), ("fly", 422)] {
        let bob = json!({ "name": "bob", "password": "correct horse", "scopes": [scopes] });
        assert_eq!(add(&boss, bob).await.0, refused, "{scopes}");
    }
    let weak = json!({ "name": "bob", "password": "short", "scopes": ["read"] });
    assert_eq!(add(&boss, weak).await.0, 422);
    let bob = json!({ "name": "bob", "password": "correct horse", "scopes": ["read"] });
    assert_eq!(add(&theirs, bob).await.1["tenant"], "acme");
    let names = async |who: &str| {
        let who = [("x-api-key", who)];
        let (_, found) = ask(&served, "GET", "/v1/users", &who, None).await;
        found["users"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect::<Value>()
    };
    assert_eq!((names(&boss).await, names(&theirs).await), (json!(["ann"]), json!(["bob"])));
    assert_eq!(served.post("/v1/auth/login", &ann).await.0, 200);
    let who = [("x-api-key", boss.as_str())];
    let change = async |who: &str, name: &str, scopes: Value| {
        let body = json!({ "scopes": scopes });
        let path = format!("/v1/users/{name}");
        ask(&served, "PATCH", &path, &[("x-api-key", who)], Some(body)).await
    };
    let (code, changed) = change(&boss, "ann", json!(["read", "manage"])).await;
    assert_eq!((code, &changed["scopes"]), (200, &json!(["read", "manage"])), "{changed}");
    for (by, name, scopes, refused) in [
        (&worker, "ann", json!(["read"]), 403),
        (&boss, "ann", json!(["operate"]), 403),
        (&boss, "ann", json!(["act_as"]), 403),
        (&boss, "ann", json!([]), 422),
        (&boss, "bob", json!(["read"]), 404),
        (&theirs, "ann", json!(["read"]), 404),
        (&boss, "boss", json!(["read"]), 409),
        (&boss, "Boss", json!(["read"]), 409),
        (&boss, "boss", json!("all"), 409),
    ] {
        let (code, why) = change(by, name, scopes).await;
        assert_eq!(code, refused, "{name} {why}");
    }
    let (_, audit) = ask(&served, "GET", "/v1/audit", &who, None).await;
    let entries = audit["entries"].as_array().unwrap();
    let entry = entries.iter().find(|one| one["action"] == "user.scopes_changed").unwrap();
    assert_eq!(entry["details"], json!({ "scopes": ["read", "manage"] }), "{entry}");
    let (_, audit) = ask(&served, "GET", "/v1/audit", &who, None).await;
    assert!(audit["entries"].to_string().contains("user.added"), "{audit}");
}
