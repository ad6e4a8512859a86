//! What a tenant may have of the service: body, rate, runs, tokens of a day (S3.04).

use serde_json::{Value, json};

use super::people::key;
use super::served::Served;
use super::{on_both, saying};

on_both!(
    work_that_is_done_again_counts_again_and_needs_room_like_any_other,
    each_tenant_has_separate_limits_and_receives_a_retry_time,
    guesses_at_a_password_are_blocked_while_other_users_log_in,
    the_design_of_a_team_counts_and_needs_room_like_any_other_work,
);

/// S3.04
async fn guesses_at_a_password_are_blocked_while_other_users_log_in(served: Served) {
    for name in ["ann", "bob"] {
        served.program_with_input(&["users", "add", name], "correct horse\n").await;
    }
    let login = async |name: &str, password: &str| {
        let given = json!({ "name": name, "password": password }).to_string();
        let asked = served.http.post(format!("{}/v1/auth/login", served.url));
        asked.header("content-type", "application/json").body(given).send().await.unwrap()
    };
    let mut guesses = 0;
    let refused = loop {
        let answer = login("ann", "wrong horse").await;
        if answer.status() != 401 {
            break answer;
        }
        guesses += 1;
        assert!(guesses < 100, "guesses have no end");
    };
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    assert!(guesses >= 10, "who mistypes a password gets in all the same: {guesses}");
    assert_eq!(login("Ann ", "correct horse").await.status(), 429, "however it is written");
    assert_eq!(login("bob", "correct horse").await.status(), 200, "another name is its own");
}

/// S1.05, S3.04
async fn each_tenant_has_separate_limits_and_receives_a_retry_time(served: Served) {
    let ours = key(&served, &["ours"]).await;
    let theirs = key(&served, &["theirs", "--tenant", "acme"]).await;
    let post = async |served: &Served, key: &str, path: &str, body: String| {
        let asked = served.http.post(format!("{}{path}", served.url)).header("x-api-key", key);
        asked.header("content-type", "application/json").body(body).send().await.unwrap()
    };
    let served = served
        .again_with(&[
            ("PERIHELION_SERVE_MAX_BODY_BYTES", "2000"),
            ("PERIHELION_SERVE_MAX_RUNS", "1"),
        ])
        .await;
    let long = saying(&"x".repeat(3_000)).to_string();
    assert_eq!(post(&served, &ours, "/runs/wait", long).await.status(), 413);

    // A run that waits for its time takes the tenant's only place.
    let mut later = saying("hello");
    later["after_seconds"] = json!(3_600);
    let begun = post(&served, &ours, "/runs", later.to_string()).await;
    assert_eq!(begun.status(), 200);
    let refused = post(&served, &ours, "/runs/wait", saying("hello").to_string()).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "5");
    let found = post(&served, &ours, "/threads/search", json!({}).to_string()).await;
    let found: Vec<serde_json::Value> = serde_json::from_str(&found.text().await.unwrap()).unwrap();
    assert_eq!(found.len(), 1, "a refused run leaves a thread behind: {found:?}");
    let other = post(&served, &theirs, "/runs/wait", saying("hello").to_string()).await;
    assert_eq!(other.status(), 200, "another tenant has places of its own");
    // Its run has ended when all of the answer has come.
    other.text().await.unwrap();

    let served = served
        .again_with(&[
            ("PERIHELION_SERVE_MAX_RUNS", "100"),
            ("PERIHELION_SERVE_MAX_DAILY_TOKENS", "1"),
        ])
        .await;
    let mut work = saying("approve this");
    work["approvals"] = json!("skip");
    // What the tenant's last run took is counted, the words of its supervisor and of its answer included.
    let second = post(&served, &theirs, "/runs/wait", work.to_string()).await;
    assert_eq!(second.status(), 429, "the tokens of the day are spent");
    let seconds: u64 = second.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=86_401).contains(&seconds), "until the next day of UTC: {seconds}");
    let why = second.text().await.unwrap();
    assert!(why.contains("the tenant's daily budget is used up"), "{why}");
    let third = post(&served, &ours, "/runs", work.to_string()).await;
    assert_eq!(third.status(), 200, "another tenant has a day of its own");

    // What the day has left bounds the run itself.
    let served = served
        .again_with(&[
            ("PERIHELION_SERVE_MAX_DAILY_TOKENS", "100000000"),
            ("PERIHELION_SERVE_MAX_DAILY_SECONDS", "1000"),
        ])
        .await;
    let run = post(&served, &theirs, "/runs/wait", saying("hello").to_string()).await;
    let run: serde_json::Value = serde_json::from_str(&run.text().await.unwrap()).unwrap();
    let bounds = run["planner"]["guardrails"].to_string();
    assert!(bounds.contains("tokens: 99") && bounds.contains("seconds: "), "{run:#}");
    let me = served.http.get(format!("{}/v1/auth/me", served.url)).header("x-api-key", &theirs);
    let me: serde_json::Value = me.send().await.unwrap().json().await.unwrap();
    let limits = me["limits"].as_array().unwrap();
    let limit = |name: &str| limits.iter().find(|one| one["name"] == name).unwrap();
    assert_eq!(limit("max_daily_tokens")["most"], 100_000_000);
    assert!(limit("max_daily_tokens")["taken"].as_u64().unwrap() > 0, "{me:#}");
    assert_eq!(limit("max_runs")["taken"], 0, "no run is under way or waits: {me:#}");

    let served = served.again_with(&[("PERIHELION_SERVE_REQUESTS_PER_MINUTE", "3")]).await;
    let get = async |key: &str| {
        let asked = served.http.get(format!("{}/info", served.url)).header("x-api-key", key);
        asked.send().await.unwrap()
    };
    let mut codes = Vec::new();
    for _ in 0..4 {
        codes.push(get(&ours).await);
    }
    let codes: Vec<u16> = codes.iter().map(|answer| answer.status().as_u16()).collect();
    assert_eq!(codes, [200, 200, 200, 429]);
    let refused = get(&ours).await;
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(get(&theirs).await.status(), 200, "another tenant has a rate of its own");
}

/// S1.05, S3.04
async fn work_that_is_done_again_counts_again_and_needs_room_like_any_other(served: Served) {
    let of_day = |most: u64| ("PERIHELION_SERVE_MAX_DAILY_TOKENS", most.to_string());
    let (name, many) = of_day(10_000_000);
    let served = served.again_with(&[(name, &many)]).await;
    let thread = served.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let taken = async |served: &Served| {
        let (_, me) = served.get("/v1/auth/me").await;
        let limits = me["limits"].as_array().unwrap();
        let tokens = limits.iter().find(|one| one["name"] == "max_daily_tokens").unwrap();
        tokens["taken"].as_u64().unwrap()
    };
    let mut work = saying("approve this");
    work["approvals"] = json!("skip");
    served.post(&wait, &work).await;
    let (_, history) = served.get(&format!("/threads/{thread}/history?limit=100")).await;
    let of_source = |source: &str| -> Vec<Value> {
        let steps = history.as_array().unwrap().iter();
        let found = steps.filter(|step| step["metadata"]["source"] == source);
        found.map(|step| step["checkpoint_id"].clone()).collect()
    };
    let question = of_source("input").pop().unwrap();
    // Oldest first: the turn is open, its agent is chosen, it has worked.
    let steps: Vec<Value> = of_source("loop").into_iter().rev().collect();
    let [chosen, worked] = [&steps[1], &steps[2]];
    let again = |at: &Value| json!({ "assistant_id": "swarm", "input": null, "checkpoint_id": at });

    let whole = taken(&served).await;
    assert!(whole > 0);
    served.post(&wait, &again(&question)).await;
    let twice = taken(&served).await;
    assert_eq!(twice, 2 * whole, "the same work was done twice");
    served.post(&wait, &again(chosen)).await;
    let part = taken(&served).await - twice;
    assert!(0 < part && part < whole, "a part of it was done again: {part} of {whole}");
    let (_, found) = served.get(&format!("/v1/runs?thread={thread}")).await;
    let runs = found["runs"].as_array().unwrap();
    let tokens: Vec<_> = runs.iter().map(|run| run["tokens"].as_u64().unwrap()).collect();
    assert_eq!(tokens, [part, whole, whole], "{found}");
    let agents: Vec<_> = runs.iter().map(|run| run["agents"].clone()).collect();
    assert_eq!(agents, vec![json!(["mcp_agent_notes"]); 3], "{found}");
    served.post(&wait, &again(worked)).await;
    let (_, audit) = served.get(&format!("/v1/audit?thread={thread}")).await;
    let executed = audit["entries"].as_array().unwrap().len();
    assert_eq!(executed, 3, "the fourth run began after its agent had worked: {audit}");

    // What the day has left bounds it as well.
    let (name, few) = of_day(taken(&served).await + 50_000);
    let served = served.again_with(&[(name, &few)]).await;
    served.post(&wait, &again(&question)).await;
    let (_, done) = served.get(&format!("/threads/{thread}/state")).await;
    let bounds = done["values"]["planner"]["guardrails"].to_string();
    assert!(bounds.contains("tokens: 50000\""), "{done}");

    let (name, one) = of_day(1);
    let served = served.again_with(&[(name, &one)]).await;
    let goto = json!({ "assistant_id": "swarm", "command": { "goto": "supervisor" } });
    let mut answer = json!({ "assistant_id": "swarm", "command": { "resume": "yes" } });
    answer["checkpoint_id"] = question.clone();
    for body in [again(&question), again(chosen), goto, answer, saying("hello")] {
        let (code, why) = served.post(&wait, &body).await;
        assert_eq!(code, 429, "{body}: {why}");
    }
    let plain = json!({ "assistant_id": "swarm", "input": null });
    let (code, done) = served.post(&wait, &plain).await;
    assert_eq!(code, 200, "nothing is to be done: {done}");
    let edit = json!({ "values": {}, "as_node": "__start__" });
    assert_eq!(served.post(&format!("/threads/{thread}/state"), &edit).await.0, 200);
    assert_eq!(served.post(&wait, &plain).await.0, 429, "the edit begins the work again");
}

/// S1.05, S1.10
async fn the_design_of_a_team_counts_and_needs_room_like_any_other_work(served: Served) {
    let served = served.again_with(&[("PERIHELION_SERVE_MAX_DAILY_TOKENS", "10")]).await;
    let are_there = |found: &Value| found["agents"].as_array().is_some_and(|all| all.len() == 2);
    served.until_got("/v1/agents", are_there).await;
    let goal = json!({ "goal": "keep notes" });
    // The model of this test designs no team, and its words are paid for all the same.
    let (code, why) = served.post("/v1/teams", &goal).await;
    assert_eq!(code, 502, "{why}");
    let (_, me) = served.get("/v1/auth/me").await;
    let limits = me["limits"].as_array().unwrap();
    let tokens = limits.iter().find(|one| one["name"] == "max_daily_tokens").unwrap();
    assert!(tokens["taken"].as_u64().unwrap() >= 10, "{me}");
    let (_, used) = served.get("/v1/fleet/tenants").await;
    assert!(used.to_string().contains("default"), "{used}");
    let before = served.model.requests().len();
    let (code, why) = served.post("/v1/teams", &goal).await;
    assert_eq!(code, 429, "{why}");
    assert_eq!(served.model.requests().len(), before, "the model was asked");
}
