//! What a tenant may have of the service: body, rate, runs, tokens of a day (S3.04).

use serde_json::json;

use super::people::key;
use super::served::Served;
use super::{on_both, saying};

on_both!(
    each_tenant_has_separate_limits_and_receives_a_retry_time,
    guesses_at_a_password_are_blocked_while_other_users_log_in,
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
