//! A server that is called back: it answers as it is told, and tells what it was sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;

/// A call as it came.
#[derive(Debug)]
pub struct Call {
    pub headers: HeaderMap,
    pub body: Value,
}

impl Call {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}")).to_str().unwrap()
    }
}

pub struct Receiver {
    pub url: String,
    calls: mpsc::UnboundedReceiver<Call>,
}

type Shared = (mpsc::UnboundedSender<Call>, Arc<Mutex<VecDeque<u16>>>, Option<String>);

impl Receiver {
    /// Answers calls with these codes, in turn, and then with 200.
    pub async fn answering(codes: &[u16]) -> Self {
        Self::leading_to(codes, None).await
    }

    /// Answers in the same way, and says in each answer where else to ask.
    pub async fn leading_to(codes: &[u16], location: Option<&str>) -> Self {
        let (sender, calls) = mpsc::unbounded_channel();
        let codes = Arc::new(Mutex::new(codes.iter().copied().collect()));
        let app = Router::new().fallback(receive).with_state((
            sender,
            codes,
            location.map(str::to_owned),
        ));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/called", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, calls }
    }

    pub async fn next(&mut self) -> Call {
        self.calls.recv().await.unwrap()
    }

    /// Returns whether there is a call that nobody has looked at.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

async fn receive(
    State((sender, codes, location)): State<Shared>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, HeaderMap) {
    let code = codes.lock().unwrap().pop_front().unwrap_or(200);
    let body = serde_json::from_str(&body).unwrap_or_default();
    sender.send(Call { headers, body }).unwrap();
    let mut answered = HeaderMap::new();
    if let Some(location) = location {
        answered.insert("location", location.parse().unwrap());
    }
    (StatusCode::from_u16(code).unwrap(), answered)
}
