//! Sends what is to be sent when runs end: webhooks, and what addresses hear of A2A tasks.
//!
//! Enter at [`Deliveries::keep`]. Invariants: of the processes of a database one sends at a time, and a delivery is
//! tried until it is taken, refused for good, or given up after twelve attempts; a receiver may see one twice, under
//! the same id; receivers of one tenant that do not answer hold up none of another's. No redirect is followed, and a name
//! is looked up where the connection is made.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use perihelion_people::Principal;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{a2a, agent_server, callbacks};
use crate::hidden::ModelAddresses;
use crate::http::Places;
use perihelion_engine::clock;
use perihelion_servers::web::Addresses;
use perihelion_service::Service;
use perihelion_service::kept::{Delivery, Error, Kept, Run};

/// How often due deliveries are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Deliveries that are under way at once.
const AT_ONCE: u32 = 32;

/// Those of one tenant, so that receivers of its that do not answer leave places to the others.
const OF_TENANT: u32 = 8;

/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a claimed delivery is left to the process that claimed it.
const CLAIM: TimeDelta = TimeDelta::seconds(15);

/// Attempts before a delivery is given up: the last is made about two hours after the first.
const MOST: u32 = 12;

/// Longest time between two attempts.
const LONGEST: TimeDelta = TimeDelta::minutes(30);

/// How long what was given up stays to be looked at.
const KEPT_FOR: TimeDelta = TimeDelta::days(7);

/// How often that is cleared away.
const CLEAR_EVERY: TimeDelta = TimeDelta::hours(1);

/// Names a delivery, so that a receiver knows one that comes twice.
const ID: HeaderName = HeaderName::from_static("x-perihelion-delivery");

/// Sends deliveries for one process; cheap to clone.
#[derive(Clone)]
pub struct Deliveries {
    service: Service,
    client: reqwest::Client,
    places: Places,
}

/// How an attempt ended.
enum Attempt {
    Taken,
    /// Nothing is to be sent: the run is no more.
    Void,
    /// It may be taken later.
    Later(String),
    Refused(String),
}

impl Deliveries {
    /// Opens a client that reaches only what the settings allow.
    ///
    /// # Errors
    /// Whatever the client's builder reports.
    pub fn open(service: Service) -> Result<Self, reqwest::Error> {
        let client = client(callbacks::allowed(&service))?;
        Ok(Self { service, client, places: Places::new(OF_TENANT, AT_ONCE) })
    }

    /// Sends what is due until the process is to end, and waits for what is under way then.
    pub async fn keep(&self) {
        let mut under_way = JoinSet::new();
        let mut clears_at = clock::now();
        loop {
            let begun = self.look(&mut under_way, &mut clears_at).await.unwrap_or_else(|error| {
                tracing::debug!(%error, "failed to read pending deliveries; retrying");
                0
            });
            // Where some were due, there may be more.
            let pause = if begun == 0 { LOOK_EVERY } else { Duration::ZERO };
            tokio::select! {
                biased;
                () = self.service.stop().cancelled() => break,
                // Its place is free for the next one.
                Some(_) = under_way.join_next() => {}
                () = clock::sleep(pause) => {}
            }
        }
        while under_way.join_next().await.is_some() {}
    }

    /// Begins what is due, as far as there are places, and returns how many it has begun.
    async fn look(
        &self,
        under_way: &mut JoinSet<()>,
        clears_at: &mut DateTime<Utc>,
    ) -> Result<usize, Error> {
        while under_way.try_join_next().is_some() {}
        let kept = self.service.kept();
        let now = clock::now();
        if *clears_at <= now {
            kept.forget_deliveries(now - KEPT_FOR).await?;
            *clears_at = now + CLEAR_EVERY;
        }
        let free = self.places.free();
        if free == 0 {
            return Ok(0);
        }
        let before = under_way.len();
        for delivery in kept.due_deliveries(now, &self.places.full(), free).await? {
            self.begin(delivery, under_way).await?;
        }
        Ok(under_way.len() - before)
    }

    /// Claims a delivery and begins it, unless its tenant has no place for it or another process claims it.
    async fn begin(&self, delivery: Delivery, under_way: &mut JoinSet<()>) -> Result<(), Error> {
        let Some(place) = self.places.take(&delivery.tenant) else { return Ok(()) };
        let kept = self.service.kept().for_tenant(&delivery.tenant);
        if kept.claim_delivery(delivery.id, clock::now(), CLAIM).await? {
            let own = self.clone();
            under_way.spawn(async move {
                own.deliver(delivery, &kept).await;
                drop(place);
            });
        }
        Ok(())
    }

    async fn deliver(&self, delivery: Delivery, kept: &Kept) {
        let id = delivery.id;
        let attempts = delivery.attempts + 1;
        let attempt = self.attempt(&delivery).await;
        let now = clock::now();
        let noted = match attempt {
            Attempt::Taken | Attempt::Void => kept.delivered(id).await,
            Attempt::Later(why) if attempts < MOST => {
                tracing::debug!(%id, %why, "a delivery was not accepted; retrying");
                kept.not_delivered(id, &why, Some(now + pause(attempts)), now).await
            }
            Attempt::Later(why) | Attempt::Refused(why) => {
                tracing::warn!(%id, run = %delivery.run, %why, "a delivery was given up");
                kept.not_delivered(id, &why, None, now).await
            }
        };
        if let Err(error) = noted {
            tracing::warn!(%error, "failed to record the end of a delivery; it can be sent twice");
        }
    }

    async fn attempt(&self, delivery: &Delivery) -> Attempt {
        let payload = match &delivery.payload {
            // Whether the run continues is asked each time: what comes late would be untrue.
            Some(payload) if !delivery.is_under_way => payload.clone(),
            _ => match self.make(delivery).await {
                Ok(Some(payload)) => payload,
                Ok(None) => return Attempt::Void,
                Err(why) => return Attempt::Later(why),
            },
        };
        let url = match callbacks::allowed(&self.service).check(&delivery.url) {
            Ok(url) => url,
            Err(error) => return Attempt::Refused(error.to_string()),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in delivery.headers.as_object().into_iter().flatten() {
            let value = value.as_str().and_then(|text| HeaderValue::from_str(text).ok());
            if let (Ok(name), Some(value)) = (HeaderName::try_from(name.as_str()), value) {
                headers.insert(name, value);
            }
        }
        if let Ok(id) = HeaderValue::from_str(&delivery.id.to_string()) {
            headers.insert(ID, id);
        }
        let kind = if delivery.kind == a2a::KIND { a2a::MEDIA } else { "application/json" };
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let addresses = ModelAddresses::of(&self.service.runtime().settings().models);
        let payload = addresses.hidden(&payload.to_string()).into_owned();
        let sent = self.client.post(url).headers(headers).body(payload).send().await;
        match sent.map(|answer| answer.status()) {
            Ok(status) if status.is_success() => Attempt::Taken,
            Ok(status) if may_pass(status) => {
                Attempt::Later(format!("the receiver answered: {status}"))
            }
            Ok(status) => Attempt::Refused(format!("the receiver answered: {status}")),
            // The address is the client's, and may hold a secret.
            Err(error) => Attempt::Later(shown(&error.without_url())),
        }
    }

    /// Makes what is sent, and keeps it.
    async fn make(&self, delivery: &Delivery) -> Result<Option<Value>, String> {
        let service = self.service.seen_by(Principal::loopback(&delivery.tenant));
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let run = service.kept().find_run(delivery.run).await.map_err(|error| text(&error))?;
        let Some(run): Option<Run> = run else { return Ok(None) };
        let payload = match delivery.kind.as_str() {
            a2a::KIND => {
                match a2a::pushed(&service, &run, &delivery.url, delivery.is_under_way).await? {
                    Some(payload) => payload,
                    None => return Ok(None),
                }
            }
            _ => agent_server::called(&service, &run).await?,
        };
        service.kept().keep_payload(delivery.id, &payload).await.map_err(|error| text(&error))?;
        Ok(Some(payload))
    }
}

/// Makes a client that connects to what is permitted at the moment of the connection, and follows nobody.
fn client(addresses: Addresses) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .dns_resolver(Arc::new(addresses))
        // A proxy would connect for us, and ask nobody.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(PATIENCE)
        .user_agent(concat!("perihelion/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Returns how long it is until the next attempt: twice as long each time.
fn pause(attempts: u32) -> TimeDelta {
    TimeDelta::seconds(1_i64 << attempts.min(16)).min(LONGEST)
}

/// Returns whether what was answered may be answered otherwise later.
fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

fn shown(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::net::SocketAddr;
    use std::sync::Mutex;

    use reqwest::dns::{Addrs, Name, Resolve, Resolving};

    use super::*;

    /// A name server that says something else each time.
    struct Rebinding(Mutex<VecDeque<&'static str>>);

    impl Resolve for Rebinding {
        fn resolve(&self, _: Name) -> Resolving {
            let words = self.0.lock().unwrap().pop_front().unwrap();
            let address = SocketAddr::new(words.parse().unwrap(), 0);
            Box::pin(async move { Ok(Box::new(std::iter::once(address)) as Addrs) })
        }
    }

    /// S2.12: a name that is public when it is looked at and leads inside when it is called.
    #[tokio::test]
    async fn a_name_that_resolves_to_a_new_address_is_refused_when_connecting() {
        perihelion_settings::config::tls::install();
        let inside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        inside.set_nonblocking(true).unwrap();
        let port = inside.local_addr().unwrap().port();
        let words = ["93.184.216.34", "127.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "::1"];
        let names = Arc::new(Rebinding(Mutex::new(words.into())));
        let addresses = Addresses::default().looked_up_by(Arc::clone(&names) as Arc<dyn Resolve>);
        let url = addresses.check(&format!("http://rebound.example.org:{port}/")).unwrap();
        let first = addresses.resolve("rebound.example.org".parse().unwrap()).await;
        assert_eq!(first.unwrap().count(), 1, "it is public when it is looked at");
        let client = client(addresses).unwrap();
        for _ in 1..words.len() {
            let error = client.post(url.clone()).body("{}").send().await.unwrap_err();
            let why = shown(&error.without_url());
            assert!(why.contains("leads to no public address"), "{why}");
        }
        let called = inside.accept().unwrap_err();
        assert_eq!(called.kind(), std::io::ErrorKind::WouldBlock, "nobody came");
        assert!(names.0.lock().unwrap().is_empty(), "each connection looks the name up");
    }
}
