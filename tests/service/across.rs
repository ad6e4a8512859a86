//! Runs and conversations of all threads are found by their words, on either database, for their tenant alone (S3.13).

use perihelion_database::{Database, query};
use serde_json::{Value, json};

use super::people::{ask, id, key};
use super::served::Served;
use super::{on_both, saying};

on_both!(
    conversations_are_found_by_their_words_for_their_tenant_until_they_are_deleted,
    runs_of_all_threads_are_filtered_and_read_page_by_page,
    a_run_that_waited_for_its_turn_lists_no_agents_of_the_runs_before_it,
);

/// S3.13, S3.04
async fn conversations_are_found_by_their_words_for_their_tenant_until_they_are_deleted(
    served: Served,
) {
    let scopes = ["--scopes", "read,run,approve"];
    let ours = key(&served, &["ours", scopes[0], scopes[1]]).await;
    let theirs = key(&served, &["theirs", "--tenant", "acme", scopes[0], scopes[1]]).await;
    let ours = [("x-api-key", ours.as_str())];
    let theirs = [("x-api-key", theirs.as_str())];
    let asked = async |who: &[(&str, &str)], questions: &[&str]| {
        let thread = id(&ask(&served, "POST", "/threads", who, Some(json!({}))).await);
        for question in questions {
            let wait = format!("/threads/{thread}/runs/wait");
            assert_eq!(ask(&served, "POST", &wait, who, Some(saying(question))).await.0, 200);
        }
        thread
    };
    let found = async |who: &[(&str, &str)], text: &str| {
        let query = json!({ "text": text, "sort_by": "created_at", "sort_order": "asc" });
        let (code, found) = ask(&served, "POST", "/threads/search", who, Some(query)).await;
        assert_eq!(code, 200, "{found}");
        let ids = found.as_array().unwrap().iter().map(|one| one["thread_id"].clone());
        ids.collect::<Vec<_>>()
    };
    let walrus = asked(&ours, &["Does the walrus sleep?", "And how long are its tusks?"]).await;
    let rechnung = asked(&ours, &["Wie viele Rechnungen sind noch offen?"]).await;
    let other = asked(&theirs, &["Does the walrus sleep?"]).await;

    // Words of later turns, of answers, in any form and case, and all of them.
    for text in ["walruses", "TUSK", "sleeping tusks", "stars walrus"] {
        assert_eq!(found(&ours, text).await, [json!(walrus)], "{text}");
    }
    assert_eq!(found(&ours, "rechnung").await, [json!(rechnung)]);
    assert_eq!(found(&ours, "star").await, [json!(walrus), json!(rechnung)]);
    for text in ["quagga", "walrus rechnung", "walr"] {
        assert!(found(&ours, text).await.is_empty(), "{text}");
    }
    assert_eq!(found(&theirs, "walrus").await, [json!(other)]);
    assert!(found(&theirs, "rechnung").await.is_empty());

    let path = format!("/threads/{walrus}/copy");
    let copy = id(&ask(&served, "POST", &path, &ours, Some(json!({}))).await);
    let path = format!("/threads/{walrus}");
    assert_eq!(ask(&served, "DELETE", &path, &ours, None).await.0, 204);
    assert_eq!(found(&ours, "tusk").await, [json!(copy)]);
    let path = format!("/threads/{copy}");
    assert_eq!(ask(&served, "DELETE", &path, &ours, None).await.0, 204);
    assert!(found(&ours, "tusk").await.is_empty());
}

/// S3.13
async fn runs_of_all_threads_are_filtered_and_read_page_by_page(served: Served) {
    served.write(
        "perihelion.toml",
        "[models.prices.scripted]\ninput_per_mtok = 2000.0\noutput_per_mtok = 8000.0\n",
    );
    let served = served.again_with(&[]).await;
    for question in ["Where is the lynx?", "please approve this", "And the otter?"] {
        let thread = served.thread().await;
        let wait = format!("/threads/{thread}/runs/wait");
        assert_eq!(served.post(&wait, &saying(question)).await.0, 200);
        if question.contains("approve") {
            let resume = json!({ "assistant_id": "swarm", "command": { "resume": { "decisions": [{ "type": "approve" }] } } });
            assert_eq!(served.post(&wait, &resume).await.1["answer"], "Hello from the star.");
        }
    }
    let listed = async |query: &str| {
        let (code, found) = served.get(&format!("/v1/runs?{query}")).await;
        assert_eq!(code, 200, "{query}: {found}");
        found
    };
    let questions = |found: &Value| {
        let runs = found["runs"].as_array().unwrap().iter();
        runs.map(|run| run["question"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>()
    };
    let all = listed("").await;
    let wanted = ["And the otter?", "-", "please approve this", "Where is the lynx?"];
    assert_eq!(questions(&all), wanted);
    assert_eq!(all["next"], Value::Null);
    let approved = &all["runs"][1];
    assert_eq!(
        (&approved["number"], &approved["agents"]),
        (&json!(2), &json!(["mcp_agent_notes"]))
    );
    assert_eq!((&approved["status"], &approved["graph_id"]), (&json!("success"), &json!("swarm")));
    for run in all["runs"].as_array().unwrap() {
        assert!(run["tokens"].as_u64() > Some(0) && run["cost_usd"].as_f64() > Some(0.0), "{run}");
        assert!(run["duration_ms"].is_u64(), "{run}");
        let trace = format!(
            "/v1/threads/{}/trace?run={}",
            run["thread_id"].as_str().unwrap(),
            run["number"]
        );
        assert_eq!(served.get(&trace).await.0, 200, "{run}");
    }

    let at = all["runs"][1]["created_at"].as_str().unwrap().replace('+', "%2B");
    let thread = format!("thread={}", approved["thread_id"].as_str().unwrap());
    assert_eq!(listed(&thread).await["runs"].as_array().unwrap().len(), 2);
    for (query, wanted) in [
        (thread.as_str(), &wanted[1..3]),
        ("thread=0197a000-0000-7000-8000-000000000000", &[]),
        ("status=error,timeout", &[][..]),
        ("status=success&graph=swarm", &wanted),
        ("graph=other", &[]),
        ("agent=mcp_agent_notes", &["-"]),
        ("agent=mcp_agent_diary", &[]),
        ("user=ann", &[]),
        ("text=otters", &["And the otter?"]),
        ("text=lynx%20otter", &[]),
        ("text=hello%20lynx", &["Where is the lynx?"]),
        ("min_cost_usd=1000", &[]),
        ("min_cost_usd=0.000001", &wanted),
        ("error=broken", &[]),
        (&format!("since={at}"), &wanted[..2]),
        (&format!("until={at}"), &wanted[2..]),
    ] {
        assert_eq!(questions(&listed(query).await), wanted, "{query}");
    }

    let first = listed("limit=2").await;
    let rest = listed(&format!("limit=2&after={}", first["next"].as_str().unwrap())).await;
    assert_eq!([questions(&first), questions(&rest)].concat(), wanted);
    for wrong in ["thread=x", "status=lost", "after=x", "since=yesterday", "words=x"] {
        assert!(matches!(served.get(&format!("/v1/runs?{wrong}")).await.0, 400 | 422), "{wrong}");
    }
}

/// S3.13
async fn a_run_that_waited_for_its_turn_lists_no_agents_of_the_runs_before_it(served: Served) {
    let thread = served.thread().await;
    let runs = format!("/threads/{thread}/runs");
    let resume = json!({ "assistant_id": "swarm", "command": { "resume": "approve" } });
    let before = served.model.requests().len();
    let mut ids = Vec::new();
    for body in [saying("hang"), saying("approve this"), resume, saying("hello")] {
        let (code, run) = served.post(&runs, &body).await;
        assert_eq!(code, 200, "{run}");
        ids.push(run["run_id"].as_str().unwrap().to_owned());
        served.model.wait_for_requests(before + 1).await;
    }
    served.post(&format!("{runs}/{}/cancel?wait=true", ids[0]), &json!({})).await;
    served.get(&format!("{runs}/{}/join", ids[3])).await;
    let (_, found) = served.get("/v1/runs").await;
    let agents = |id: &String| {
        let mut runs = found["runs"].as_array().unwrap().iter();
        runs.find(|run| run["run_id"] == id.as_str()).unwrap()["agents"].clone()
    };
    let agents: Vec<Value> = ids.iter().map(agents).collect();
    assert_eq!(agents, [json!([]), json!([]), json!(["mcp_agent_notes"]), json!([])], "{found}");
}

/// S3.09: the index of words would be a plain copy of what is encrypted.
#[tokio::test]
async fn words_of_encrypted_conversations_are_not_stored() {
    let key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    let keys = [("KEY_ONE", key), ("PERIHELION_ENCRYPTION_KEYS", "one=env:KEY_ONE")];
    let served = Served::sqlite().await.again_with(&keys).await;
    let thread = served.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    assert_eq!(served.post(&wait, &saying("Where is the lynx?")).await.0, 200);
    let (code, refused) = served.post("/threads/search", &json!({ "text": "lynx" })).await;
    assert!(code == 422 && refused["detail"].as_str().unwrap().contains("encrypted"), "{refused}");
    assert_eq!(served.get("/v1/runs?text=lynx").await.0, 422);
    let (code, refused) = served.get("/v1/runs?error=broken").await;
    assert!(code == 422 && refused["detail"].as_str().unwrap().contains("encrypted"), "{refused}");
    let (_, all) = served.get("/v1/runs").await;
    assert_eq!(all["runs"][0]["question"], "Where is the lynx?");
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    let stored = database.fetch_all(&query("SELECT word FROM conversation_word")).await.unwrap();
    assert!(stored.is_empty());
}
