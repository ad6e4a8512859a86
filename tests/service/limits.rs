//! What a tenant may have of the service: body, rate, runs, tokens of a day (S3.04).

use serde_json::json;

use super::people::key;
use super::served::Served;
use super::{on_both, saying};

on_both!(each_tenant_is_held_to_its_limits_and_told_when_to_come_again);

/// S3.04
async fn each_tenant_is_held_to_its_limits_and_told_when_to_come_again(served: Served) {
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
    let other = post(&served, &theirs, "/runs/wait", saying("hello").to_string()).await;
    assert_eq!(other.status(), 200, "another tenant has places of its own");

    let served = served
        .again_with(&[
            ("PERIHELION_SERVE_MAX_RUNS", "100"),
            ("PERIHELION_SERVE_MAX_DAILY_TOKENS", "1"),
        ])
        .await;
    let mut work = saying("approve this");
    work["approvals"] = json!("skip");
    let first = post(&served, &theirs, "/runs/wait", work.to_string()).await;
    assert_eq!(first.status(), 200);
    let second = post(&served, &theirs, "/runs/wait", work.to_string()).await;
    assert_eq!(second.status(), 429, "the tokens of the day are spent");

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
