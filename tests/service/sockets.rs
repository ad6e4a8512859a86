//! Sockets that are refused: a page reads why from the code that they are closed by.

use futures::StreamExt as _;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use uuid::Uuid;

use super::people::key;
use super::served::Served;

/// Opens a socket and returns the code and the reason that it is closed by.
async fn closed(served: &Served, thread: &str, key: Option<&str>) -> (u16, String) {
    let url = format!("{}/threads/{thread}/stream/events", served.url.replace("http", "ws"));
    let mut asked = url.as_str().into_client_request().unwrap();
    if let Some(key) = key {
        asked.headers_mut().insert("x-api-key", key.parse().unwrap());
    }
    let (mut socket, _) = tokio_tungstenite::connect_async(asked).await.unwrap();
    match socket.next().await {
        Some(Ok(Message::Close(Some(close)))) => (close.code.into(), close.reason.to_string()),
        other => panic!("{other:?}"),
    }
}

/// S3.04, X5
#[tokio::test]
async fn a_socket_is_refused_by_the_code_that_it_is_closed_by() {
    let served = Served::sqlite().await;
    let reads = key(&served, &["reads", "--scopes", "read"]).await;
    let runs = key(&served, &["runs", "--scopes", "run"]).await;
    let theirs = key(&served, &["theirs", "--tenant", "acme"]).await;
    let thread = Uuid::now_v7().to_string();
    let (code, why) = closed(&served, &thread, None).await;
    assert!(code == 4401 && why.contains("x-api-key"), "{code} {why}");
    assert_eq!(closed(&served, &thread, Some("ph_nobody")).await.0, 4401);
    let (code, why) = closed(&served, &thread, Some(&runs)).await;
    assert!(code == 4403 && why.contains("scope: read"), "{code} {why}");
    let (code, why) = closed(&served, "nothing", Some(&reads)).await;
    assert!(code == 4422 && why.contains("thread ID"), "{code} {why}");
    let served = served.again_with(&[("PERIHELION_SERVE_REQUESTS_PER_MINUTE", "1")]).await;
    let asked = served.http.get(format!("{}/info", served.url)).header("x-api-key", &theirs);
    assert_eq!(asked.send().await.unwrap().status(), 200);
    let (code, why) = closed(&served, &thread, Some(&theirs)).await;
    assert!(code == 4429 && why.contains("too many requests"), "{code} {why}");
}
