//! Addresses that the server would call: inside, and those that lead there from outside.

use perihelion_database::{Database, query};
use serde_json::json;

use crate::receiver::Receiver;
use crate::served::Served;
use crate::{on_both, saying};

on_both!(no_redirect_of_an_address_that_is_called_is_followed);

/// Addresses that the server would call: none are taken.
#[tokio::test]
async fn no_address_is_called_back() {
    let served = Served::sqlite().await;
    let mut body = saying("hello");
    body["webhook"] = json!("http://169.254.169.254/latest/meta-data");
    for path in ["/runs", "/runs/wait", "/runs/stream"] {
        assert_eq!(served.post(path, &body).await.0, 422, "{path}");
    }
    let message = json!({
        "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] },
        "configuration": { "taskPushNotificationConfig": { "url": "http://169.254.169.254/" } },
    });
    let (code, reply) = served.post("/a2a/message:send", &message).await;
    assert!((400..500).contains(&code), "{code} {reply}");
}

/// S2.12: Webhooks and push notifications that are answered by 301, 302, 303, 307 and 308: what is named then is not asked.
async fn no_redirect_of_an_address_that_is_called_is_followed(served: Served) {
    let inside = Receiver::answering(&[]).await;
    let metadata = "http://169.254.169.254/latest/meta-data/".to_owned();
    let mut receivers = Vec::new();
    for code in [301, 302, 303, 307, 308] {
        for location in [&inside.url, &metadata] {
            receivers.push((code, Receiver::leading_to(&[code; 8], Some(location)).await));
        }
    }
    // They may be called, each by its port, and what they name may not.
    let ports = receivers.iter().map(|(_, one)| one.url.strip_prefix("http://").unwrap());
    let ports = ports.map(|url| url.strip_suffix("/called").unwrap()).collect::<Vec<_>>().join(",");
    let served = served.again_with(&[("PERIHELION_SERVE_CALLBACK_HOSTS", &ports)]).await;
    for (number, (_, receiver)) in receivers.iter_mut().enumerate() {
        let mut body = saying("hello");
        body["webhook"] = json!(receiver.url);
        let (code, reply) = served.post("/runs/wait", &body).await;
        assert_eq!(code, 200, "{reply}");
        let message = json!({
            "message": { "messageId": format!("m{number}"), "role": "ROLE_USER", "parts": [{ "text": "hello" }] },
            "configuration": { "taskPushNotificationConfig": { "url": receiver.url } },
        });
        let (code, reply) = served.post("/a2a/message:send", &message).await;
        assert_eq!(code, 200, "{reply}");
        receiver.next().await;
        receiver.next().await;
    }
    // Each was given up with what it was answered, and nothing followed.
    let given_up = given_up(&served, receivers.len() * 2).await;
    for (code, _) in &receivers {
        let of_code = given_up.iter().filter(|why| why.contains(&code.to_string())).count();
        assert!(of_code >= 4, "{code}: {given_up:?}");
    }
    assert!(inside.is_empty(), "a redirect was followed");
}

/// Returns why deliveries were given up, once so many were and none is left.
async fn given_up(served: &Served, count: usize) -> Vec<String> {
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    let given_up = query("SELECT problem FROM service_delivery WHERE ended_at IS NOT NULL");
    let left = query("SELECT id FROM service_delivery WHERE ended_at IS NULL");
    loop {
        let is_left = !database.fetch_all(&left).await.unwrap().is_empty();
        let rows = database.fetch_all(&given_up).await.unwrap();
        if rows.len() >= count && !is_left {
            database.close().await;
            return rows.iter().map(|row| row.get(0).unwrap()).collect();
        }
        perihelion::clock::sleep(std::time::Duration::from_millis(10)).await;
    }
}
