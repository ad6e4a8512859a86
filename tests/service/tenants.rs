//! What a tenant's runs learn and its people keep is that tenant's alone (S3.04, S1.11).

use perihelion_database::{Database, query};
use serde_json::{Value, json};

use super::people::{ask, id, key};
use super::served::Served;
use super::{on_both, saying};

on_both!(
    skills_learned_for_one_tenant_are_visible_only_to_it,
    teams_of_one_tenant_work_for_it_alone,
    documents_and_memories_of_one_tenant_are_listed_for_it_alone,
    documents_that_an_agent_adds_in_a_run_belong_only_to_its_tenant,
    the_command_line_works_for_the_tenant_that_it_names,
    operators_compare_the_usage_of_tenants,
    an_id_of_another_tenant_is_as_unknown_as_any,
);

const ALL: [&str; 2] = ["--scopes", "read,run,approve,manage,act_as"];

async fn keys(served: &Served) -> (String, String) {
    let ours = key(served, &["ours", ALL[0], ALL[1]]).await;
    (ours, key(served, &["theirs", "--tenant", "acme", ALL[0], ALL[1]]).await)
}

/// Has the notes agent write something down, with the approval that it needs.
async fn work(served: &Served, as_one: &[(&str, &str)]) {
    let thread = id(&ask(served, "POST", "/threads", as_one, Some(json!({}))).await);
    let wait = format!("/threads/{thread}/runs/wait");
    let (_, asked) = ask(served, "POST", &wait, as_one, Some(saying("approve this"))).await;
    assert!(asked["__interrupt__"].is_array(), "{asked}");
    let resume = json!({ "assistant_id": "swarm", "command": { "resume": { "decisions": [{ "type": "approve" }] } } });
    let (_, done) = ask(served, "POST", &wait, as_one, Some(resume)).await;
    assert_eq!(done["answer"], "Hello from the star.", "{done}");
}

async fn listed(served: &Served, as_one: &[(&str, &str)], path: &str, key: &str) -> usize {
    let (code, reply) = ask(served, "GET", path, as_one, None).await;
    assert_eq!(code, 200, "{path}: {reply}");
    let list = if key.is_empty() { &reply } else { &reply[key] };
    list.as_array().unwrap().len()
}

/// S1.11, S3.04
async fn skills_learned_for_one_tenant_are_visible_only_to_it(served: Served) {
    let (ours, theirs) = keys(&served).await;
    let ours = [("x-api-key", ours.as_str())];
    let theirs = [("x-api-key", theirs.as_str())];
    work(&served, &theirs).await;
    assert_eq!(listed(&served, &theirs, "/v1/skills", "skills").await, 1);
    assert_eq!(listed(&served, &ours, "/v1/skills", "skills").await, 0);
    let shown = |since: usize| {
        let requests = served.model.requests();
        let agents = requests[since..].iter().filter(|one| one.role == "agent");
        agents.filter(|one| one.contains("<skill>")).count()
    };
    let before = served.model.requests().len();
    work(&served, &ours).await;
    assert_eq!(shown(before), 0, "another tenant's skill was shown");
    let before = served.model.requests().len();
    work(&served, &theirs).await;
    assert!(shown(before) > 0, "its own skill was not shown");
    let (_, skills) = ask(&served, "GET", "/v1/skills", &ours, None).await;
    let id = skills["skills"][0]["id"].as_str().unwrap();
    let path = format!("/v1/skills/{id}");
    let (code, _) = ask(&served, "GET", &path, &theirs, None).await;
    let (_, own) = ask(&served, "GET", "/v1/skills", &theirs, None).await;
    let is_alike = own["skills"].as_array().unwrap().iter().any(|one| one["id"] == id);
    assert_eq!(code, if is_alike { 200 } else { 404 });
    assert_eq!(ask(&served, "DELETE", &path, &ours, None).await.0, 204);
    assert_eq!(listed(&served, &theirs, "/v1/skills", "skills").await, 1, "theirs stays");
}

/// S1.10, S3.04
async fn teams_of_one_tenant_work_for_it_alone(served: Served) {
    let (ours, theirs) = keys(&served).await;
    let ours = [("x-api-key", ours.as_str())];
    let theirs = [("x-api-key", theirs.as_str())];
    let design = json!({
        "name": "keepers", "description": "Keeps notes.",
        "agents": [
            { "name": "keeper", "role": "keeper of notes", "goal": "Notes facts.", "servers": ["notes"] },
            { "name": "diarist", "role": "keeper of the diary", "goal": "Notes days.", "servers": ["diary"] },
        ],
    });
    let made = json!({ "design": design });
    let (code, reply) = ask(&served, "POST", "/v1/teams", &theirs, Some(made)).await;
    assert_eq!(code, 200, "{reply}");
    assert_eq!(listed(&served, &theirs, "/v1/teams", "").await, 1);
    assert_eq!(listed(&served, &ours, "/v1/teams", "").await, 0);
    assert_eq!(ask(&served, "GET", "/v1/teams/keepers", &ours, None).await.0, 404);
    assert_eq!(ask(&served, "DELETE", "/v1/teams/keepers", &ours, None).await.0, 404);
    let body =
        json!({ "assistant_id": "swarm", "input": { "question": "hello", "team": "keepers" } });
    let (code, reply) = ask(&served, "POST", "/runs/wait", &ours, Some(body.clone())).await;
    assert_eq!(code, 422, "{reply}");
    let (code, reply) = ask(&served, "POST", "/runs/wait", &theirs, Some(body)).await;
    assert_eq!((code, &reply["answer"]), (200, &json!("Hello from the star.")), "{reply}");
    let menu = |since: usize| {
        let requests = served.model.requests();
        let all = requests[since..].iter().filter(|one| one.role == "supervisor");
        all.filter(|one| one.contains("- team_keepers")).count()
    };
    for (one, wanted) in [(&ours, 0), (&theirs, 1)] {
        let before = served.model.requests().len();
        ask(&served, "POST", "/runs/wait", one, Some(saying("hello"))).await;
        assert_eq!(menu(before), wanted);
    }
}

/// S3.03, S3.04, S3.05
async fn documents_and_memories_of_one_tenant_are_listed_for_it_alone(served: Served) {
    let (ours, theirs) = keys(&served).await;
    let ours = [("x-api-key", ours.as_str())];
    let theirs = [("x-api-key", theirs.as_str())];
    served.write("lease.md", "# Lease\n\nThe notice period is three months.\n");
    served.program(&["documents", "add", "lease.md"]).await;
    served.program(&["memory", "set", "city", "Brno", "--user", "ann"]).await;
    for (one, count) in [(&ours, 1), (&theirs, 0)] {
        assert_eq!(listed(&served, one, "/v1/documents", "documents").await, count);
        let search = "/v1/documents/search?text=notice%20period";
        assert_eq!(listed(&served, one, search, "hits").await, count);
        assert_eq!(listed(&served, one, "/v1/memory?user=ann", "memories").await, count);
    }
    let (_, own) = ask(&served, "GET", "/v1/documents", &ours, None).await;
    let path = format!("/v1/documents/{}", own["documents"][0]["id"].as_str().unwrap());
    assert_eq!(ask(&served, "GET", &path, &theirs, None).await.0, 404);
    assert_eq!(ask(&served, "DELETE", &path, &theirs, None).await.0, 404);
    assert_eq!(ask(&served, "GET", &path, &ours, None).await.0, 200);
    let (_, own): (u16, Value) = ask(&served, "GET", "/v1/memory?user=ann", &ours, None).await;
    assert_eq!(own["memories"][0]["value"], "Brno");
}

/// S3.04: no route tells an id that is another tenant's from one that is nobody's.
async fn an_id_of_another_tenant_is_as_unknown_as_any(served: Served) {
    let (ours, theirs) = keys(&served).await;
    let ours = [("x-api-key", ours.as_str()), ("a2a-version", "1.0")];
    let theirs = [("x-api-key", theirs.as_str()), ("a2a-version", "1.0")];
    let thread = id(&ask(&served, "POST", "/threads", &theirs, Some(json!({}))).await);
    let wait = format!("/threads/{thread}/runs/wait");
    ask(&served, "POST", &wait, &theirs, Some(saying("hello"))).await;
    let (_, runs) = ask(&served, "GET", &format!("/threads/{thread}/runs"), &theirs, None).await;
    let run = runs[0]["run_id"].as_str().unwrap().to_owned();
    let made = json!({ "graph_id": "swarm" });
    let (_, assistant) = ask(&served, "POST", "/assistants", &theirs, Some(made)).await;
    let assistant = assistant["assistant_id"].as_str().unwrap().to_owned();
    let cron = json!({ "assistant_id": "swarm", "schedule": "0 0 1 1 *", "input": { "question": "hello" } });
    let (_, cron) = ask(&served, "POST", "/runs/crons", &theirs, Some(cron)).await;
    let cron = cron["cron_id"].as_str().unwrap().to_owned();
    let message = json!({ "message": { "role": "ROLE_USER", "messageId": "m", "contextId": thread, "parts": [{ "text": "hello" }] } });
    let create = json!({ "assistant_id": "swarm", "input": { "question": "hello" }, "if_not_exists": "create" });
    let respond =
        json!({ "model": "swarm", "input": "hello", "metadata": { "thread_id": thread } });
    let dump = {
        let url = format!("{}/v1/threads/{thread}/export", served.url);
        let asked = served.http.get(url).header("x-api-key", theirs[0].1);
        asked.send().await.unwrap().text().await.unwrap()
    };
    let url = format!("{}/v1/threads/import", served.url);
    let imported = served.http.post(url).header("x-api-key", ours[0].1).body(dump).send().await;
    assert_eq!(imported.unwrap().status(), 404, "an import");
    for (method, path, body) in [
        ("POST", "/threads".to_owned(), Some(json!({ "thread_id": thread }))),
        (
            "POST",
            "/threads".to_owned(),
            Some(json!({ "thread_id": thread, "if_exists": "do_nothing" })),
        ),
        ("POST", format!("/threads/{thread}/runs"), Some(create.clone())),
        ("POST", format!("/threads/{thread}/runs/wait"), Some(create.clone())),
        ("POST", format!("/threads/{thread}/runs/stream"), Some(create)),
        (
            "POST",
            format!("/threads/{thread}/runs/crons"),
            Some(json!({ "assistant_id": "swarm", "schedule": "0 0 1 1 *" })),
        ),
        (
            "POST",
            "/assistants".to_owned(),
            Some(json!({ "graph_id": "swarm", "assistant_id": assistant })),
        ),
        (
            "POST",
            "/assistants".to_owned(),
            Some(
                json!({ "graph_id": "swarm", "assistant_id": assistant, "if_exists": "do_nothing" }),
            ),
        ),
        ("PATCH", format!("/assistants/{assistant}"), Some(json!({ "name": "ours" }))),
        ("GET", format!("/assistants/{assistant}"), None),
        ("DELETE", format!("/assistants/{assistant}"), None),
        ("PATCH", format!("/runs/crons/{cron}"), Some(json!({ "enabled": false }))),
        ("DELETE", format!("/runs/crons/{cron}"), None),
        ("POST", "/a2a/message:send".to_owned(), Some(message)),
        ("GET", format!("/a2a/tasks/{run}"), None),
        ("POST", format!("/a2a/tasks/{run}:cancel"), Some(json!({}))),
        ("GET", format!("/a2a/tasks/{run}/pushNotificationConfigs"), None),
        ("POST", "/v1/responses".to_owned(), Some(respond)),
        ("GET", format!("/threads/{thread}"), None),
        ("PATCH", format!("/threads/{thread}"), Some(json!({ "metadata": {} }))),
        ("POST", format!("/threads/{thread}/copy"), None),
        ("GET", format!("/threads/{thread}/state"), None),
        ("POST", format!("/threads/{thread}/state"), Some(json!({ "values": {} }))),
        ("GET", format!("/threads/{thread}/history"), None),
        ("GET", format!("/threads/{thread}/runs"), None),
        ("GET", format!("/threads/{thread}/runs/{run}"), None),
        ("POST", format!("/threads/{thread}/runs/{run}/cancel"), Some(json!({}))),
        ("GET", format!("/runs/{run}/stream"), None),
        ("GET", format!("/v1/threads/{thread}/trace"), None),
        ("GET", format!("/v1/threads/{thread}/export"), None),
        ("GET", format!("/v1/threads/{thread}/artifacts"), None),
        ("DELETE", format!("/threads/{thread}"), None),
    ] {
        let (code, why) = ask(&served, method, &path, &ours, body).await;
        assert_eq!(code, 404, "{method} {path}: {why}");
    }
    let (code, _) = ask(&served, "GET", &format!("/threads/{thread}"), &theirs, None).await;
    assert_eq!(code, 200, "theirs stays");
}

/// The bundled server over the database of the threads.
pub fn library(served: &Served) -> String {
    let database = served.database();
    format!(
        "[mcp_servers.library]\ncommand = \"perihelion\"\nagent = \"tools\"\nopen_world = false\n\
         args = [\"mcp\", \"documents\", \"--words-only\", \"--database\", {database:?}]\n"
    )
}

/// S3.05, S3.04: the bundled server learns whose call it is.
async fn documents_that_an_agent_adds_in_a_run_belong_only_to_its_tenant(served: Served) {
    served.write("mcp-servers.toml", &library(&served));
    let served = served.again_with(&[]).await;
    let (ours, theirs) = keys(&served).await;
    let ours = [("x-api-key", ours.as_str())];
    let theirs = [("x-api-key", theirs.as_str())];
    let (_, done) = ask(&served, "POST", "/runs/wait", &theirs, Some(saying("file it"))).await;
    assert_eq!(done["results"][0]["output"], "It is filed.", "{done}");
    assert_eq!(done["results"][0]["tools"][0]["is_error"], false, "{done}");
    assert_eq!(listed(&served, &theirs, "/v1/documents", "documents").await, 1);
    assert_eq!(listed(&served, &ours, "/v1/documents", "documents").await, 0);
}

/// S3.04
async fn the_command_line_works_for_the_tenant_that_it_names(served: Served) {
    let (ours, theirs) = keys(&served).await;
    let ours = [("x-api-key", ours.as_str())];
    let theirs = [("x-api-key", theirs.as_str())];
    let weekly = ["run", "hello", "--thread", "weekly", "--tenant", "acme", "--user", "ann", "-q"];
    for question in ["the first", "a further one"] {
        assert_eq!(served.program(&weekly).await, "Hello from the star.\n", "{question}");
    }
    served.program(&["run", "hello", "--thread", "weekly", "-q"]).await;
    for (one, user) in [(&ours, &Value::Null), (&theirs, &json!("ann"))] {
        let (_, found) = ask(&served, "POST", "/threads/search", one, Some(json!({}))).await;
        assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
        assert_eq!(&found[0]["values"]["user"], user);
    }
    let list = served.program(&["threads", "list", "--tenant", "acme", "--json"]).await;
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["title"]), (1, &json!("weekly")));
    served.program(&["memory", "set", "city", "Brno", "--user", "ann", "--tenant", "acme"]).await;
    assert_eq!(listed(&served, &theirs, "/v1/memory?user=ann", "memories").await, 1);
    assert_eq!(listed(&served, &ours, "/v1/memory?user=ann", "memories").await, 0);
    served.write("lease.md", "# Lease\n\nThe notice period is three months.\n");
    served.program(&["documents", "add", "lease.md", "--tenant", "acme"]).await;
    assert_eq!(listed(&served, &theirs, "/v1/documents", "documents").await, 1);
    assert_eq!(listed(&served, &ours, "/v1/documents", "documents").await, 0);
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    let of = query("SELECT tenant FROM thread WHERE graph = 'document'");
    let tenants: Vec<String> = database.rows(&of).await.unwrap();
    database.close().await;
    assert_eq!(tenants, ["acme"], "what adds a document is of its tenant");
    work(&served, &theirs).await;
    let skills = async |args: &[&str]| -> usize {
        let reply = served.program(&[&["skills", "list", "--json"], args].concat()).await;
        serde_json::from_str::<Value>(&reply).unwrap().as_array().unwrap().len()
    };
    assert_eq!((skills(&["--tenant", "acme"]).await, skills(&[]).await), (1, 0));
    let teams = served.program(&["teams", "list", "--json", "--tenant", "acme"]).await;
    assert_eq!(teams.trim(), "[]");
}

/// S3.04: no scope of a tenant's own opens it, and nobody passes it on who lacks it; nor the models of the machine.
async fn operators_compare_the_usage_of_tenants(served: Served) {
    let (ours, theirs) = keys(&served).await;
    let operator = key(&served, &["operator", "--scopes", "read,operate"]).await;
    for (one, times) in [(&ours, 1), (&theirs, 2)] {
        for _ in 0..times {
            let as_one = [("x-api-key", one.as_str())];
            let (code, done) =
                ask(&served, "POST", "/runs/wait", &as_one, Some(saying("hello"))).await;
            assert_eq!(code, 200, "{done}");
        }
    }
    let path = "/v1/fleet/tenants?days=400";
    let (code, all) = ask(&served, "GET", path, &[("x-api-key", &operator)], None).await;
    assert_eq!((code, &all["days"]), (200, &json!(40)), "{all}");
    let tenants = all["tenants"].as_array().unwrap();
    let seen: Vec<_> = tenants.iter().map(|one| (&one["tenant"], &one["runs"])).collect();
    assert_eq!(seen, [(&json!("acme"), &json!(2)), (&json!("default"), &json!(1))]);
    let number = |at: usize, name: &str| tenants[at][name].as_u64().unwrap();
    for name in ["tokens", "steps"] {
        assert!(number(1, name) > 0 && number(0, name) > number(1, name), "{all}");
    }
    let local = "/v1/fleet/local-models";
    let (code, found) = ask(&served, "GET", local, &[("x-api-key", &operator)], None).await;
    assert!(code == 200 && found["found"].is_array(), "{found}");
    for one in [&ours, &theirs] {
        let as_one = [("x-api-key", one.as_str())];
        for path in [path, local] {
            assert_eq!(ask(&served, "GET", path, &as_one, None).await.0, 403);
        }
        let more = json!({ "name": "more", "scopes": ["operate"] });
        assert_eq!(ask(&served, "POST", "/v1/keys", &as_one, Some(more)).await.0, 403);
    }
}
