//! Where the API server's tokens come from, besides a login and the environment, which `api.rs` tries.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::api::{Started, started};

async fn private(shop: &Started) -> Value {
    shop.client.data("call_operation", json!({"operation": "private"})).await
}

/// S2.06: a client gets a token by its secret, keeps it, and gets another when that is refused.
#[tokio::test]
async fn a_client_gets_its_token_with_its_secret_and_reuses_it() {
    let auth = "[client_credentials]\ntoken_url = \"ADDRESS/oauth\"\nclient_id = \"us\"\nclient_secret = \"${SHOP_SECRET}\"\n\
                scope = \"read\"\n";
    let shop =
        started(&["--header", "X-Api-Key=a-long-key"], auth, &[("SHOP_SECRET", "pass-word-1")])
            .await;
    shop.shop.good.store(1, Ordering::SeqCst);
    assert_eq!(private(&shop).await["status"], 200);
    let echo = shop.client.data("read_operation", json!({"operation": "echo"})).await;
    let shown = "/admin?Bearer [redacted]&[redacted]";
    assert_eq!(echo["headers"]["location"], shown, "an answer that repeats secrets");
    assert_eq!(shop.shop.logins.load(Ordering::SeqCst), 1, "the token is kept");
    shop.shop.good.store(2, Ordering::SeqCst);
    assert_eq!(private(&shop).await["body"], json!({"secret": true}));
    assert_eq!(shop.shop.logins.load(Ordering::SeqCst), 2);
    shop.client.stop().await;
}

/// S2.06: a token that another program keeps in a file is read again when it is refused.
#[tokio::test]
async fn a_token_file_is_read_again_when_its_token_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("token");
    std::fs::write(&file, "token-1\n").unwrap();
    let environment = [("PERIHELION_API_TOKEN_FILE", file.to_str().unwrap())];
    let shop = started(&[], "", &environment).await;
    shop.shop.good.store(1, Ordering::SeqCst);
    assert_eq!(private(&shop).await["status"], 200);
    std::fs::write(&file, json!({"access_token": "token-2"}).to_string()).unwrap();
    shop.shop.good.store(2, Ordering::SeqCst);
    assert_eq!(private(&shop).await["status"], 200);
    shop.client.stop().await;
}
