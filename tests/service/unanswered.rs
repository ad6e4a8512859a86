//! Webhooks whose receivers do not answer: they cost their tenant's places, and no other tenant's (S3.04, X5).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::callbacks::ALLOWED;
use super::people::{ask, key};
use super::receiver::Receiver;
use super::served::Served;
use super::{on_both, saying};

on_both!(a_tenant_whose_receivers_do_not_answer_holds_up_no_other);

/// Runs whose receiver does not answer.
const RUNS: usize = 60;

/// A receiver that takes calls and answers none.
struct Silent {
    url: String,
    calls: Arc<AtomicUsize>,
}

impl Silent {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        tokio::spawn(async move {
            let mut connections = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                connections.push(connection);
            }
        });
        Self { url, calls }
    }
}

/// A run that pauses at once and tells an address so.
fn reporting(url: &str) -> Value {
    let mut body = saying("hello");
    body["interrupt_before"] = json!("*");
    body["webhook"] = json!(url);
    body
}

/// S3.04, X5
async fn a_tenant_whose_receivers_do_not_answer_holds_up_no_other(served: Served) {
    let ours = key(&served, &["ours"]).await;
    let theirs = key(&served, &["theirs", "--tenant", "acme"]).await;
    let served = served.again_with(&ALLOWED).await;
    let silent = Silent::start().await;
    let mut receiver = Receiver::answering(&[]).await;
    let wait = async |key: &str, url: &str| {
        let who = [("x-api-key", key)];
        let (code, left) = ask(&served, "POST", "/runs/wait", &who, Some(reporting(url))).await;
        assert_eq!(code, 200, "{left}");
    };
    for _ in 0..RUNS {
        wait(&ours, &silent.url).await;
    }
    wait(&theirs, &receiver.url).await;
    // Theirs is the last that became due, and need not wait for those before it.
    receiver.next().await;
    let called = silent.calls.load(Ordering::SeqCst);
    assert!((1..RUNS - 20).contains(&called), "so many were called before: {called}");
}
