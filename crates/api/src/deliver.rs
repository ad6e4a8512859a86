//! Sends the messages at the end of runs: webhooks, and push notifications of A2A tasks.
//!
//! Enter at [`Deliveries::keep`]. Invariants: one process of a database sends at a time. A delivery is tried until it
//! is accepted, refused permanently, or given up after twelve attempts. A receiver can get one twice, under the same
//! ID. Slow receivers of one tenant do not delay those of another. Redirects are not followed, and a name is resolved
//! when the connection is made.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use http::{HeaderMap, HeaderName, HeaderValue};
use perihelion_people::Principal;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{a2a, agent_server};
use crate::auth::Places;
use crate::hidden::ModelAddresses;
use crate::http::Refusal;
use perihelion_engine::clock;
use perihelion_http::reach::{is_transient, with_causes};
use perihelion_service::Service;
use perihelion_service::kept::{Delivery, Error, Kept, Run};
use perihelion_web::Addresses;

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Deliveries that are under way at once.
const AT_ONCE: u32 = 32;

/// Concurrent deliveries of one tenant, so that its slow receivers leave places free.
const OF_TENANT: u32 = 8;

/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a claimed delivery is left to the process that claimed it.
const CLAIM: TimeDelta = TimeDelta::seconds(15);

/// Attempts before a delivery is given up: the last is made about two hours after the first.
const MOST: u32 = 12;

/// Longest time between two attempts.
const LONGEST: TimeDelta = TimeDelta::minutes(30);

/// How long failed deliveries stay visible.
const KEPT_FOR: TimeDelta = TimeDelta::days(7);

const CLEAR_EVERY: TimeDelta = TimeDelta::hours(1);

/// Names a delivery, so that a receiver can recognize a duplicate.
const ID: HeaderName = HeaderName::from_static("x-perihelion-delivery");

/// Sends deliveries for one process; cheap to clone.
#[derive(Clone)]
pub struct Deliveries {
    service: Service,
    client: reqwest::Client,
    places: Places,
}

enum Attempt {
    Taken,
    /// There is no message, because the run was deleted.
    Void,
    Later(String),
    Refused(String),
}

impl Deliveries {
    /// Opens a client that reaches only addresses that the settings permit.
    pub fn open(service: Service) -> Result<Self, reqwest::Error> {
        let client = client(allowed(&service))?;
        Ok(Self { service, client, places: Places::new(OF_TENANT, AT_ONCE) })
    }

    /// Sends due messages until the process must end, and then waits for active ones.
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

    /// Starts due messages while there are places, and returns how many.
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
        let run = delivery.run;
        let attempt = match kept.opened_delivery(delivery) {
            Ok(delivery) => self.attempt(&delivery).await,
            // Another process may have its key.
            Err(error) => Attempt::Later(with_causes(&error)),
        };
        let now = clock::now();
        let noted = match attempt {
            Attempt::Taken | Attempt::Void => kept.delivered(id).await,
            Attempt::Later(why) if attempts < MOST => {
                tracing::debug!(%id, %why, "a delivery was not accepted; retrying");
                kept.not_delivered(id, &why, Some(now + pause(attempts)), now).await
            }
            Attempt::Later(why) | Attempt::Refused(why) => {
                tracing::warn!(%id, %run, %why, "a delivery was given up");
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
                Err(Refusal(_, why)) => return Attempt::Later(why),
            },
        };
        let url = match allowed(&self.service).check(&delivery.url) {
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
            Ok(status) if is_transient(status.as_u16()) => {
                Attempt::Later(format!("the receiver answered: {status}"))
            }
            Ok(status) => Attempt::Refused(format!("the receiver answered: {status}")),
            // The address is the client's, and can contain a secret.
            Err(error) => Attempt::Later(with_causes(&error.without_url())),
        }
    }

    async fn make(&self, delivery: &Delivery) -> Result<Option<Value>, Refusal> {
        let service = self.service.seen_by(Principal::loopback(&delivery.tenant));
        let run = service.kept().find_run(delivery.run).await?;
        let Some(run): Option<Run> = run else { return Ok(None) };
        let payload = match delivery.kind.as_str() {
            a2a::KIND => {
                let pushed =
                    a2a::pushed(&service, &run, &delivery.url, delivery.is_under_way).await;
                match pushed.map_err(Refusal::invalid)? {
                    Some(payload) => payload,
                    None => return Ok(None),
                }
            }
            _ => agent_server::called(&service, &run).await?,
        };
        service.kept().keep_payload(delivery.id, &payload).await?;
        Ok(Some(payload))
    }
}

/// Makes a client that checks addresses when it connects, and follows no redirects.
fn client(addresses: Addresses) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .dns_resolver(Arc::new(addresses))
        // A proxy would connect for us without the check of the address.
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

pub(crate) fn allowed(service: &Service) -> Addresses {
    Addresses::allowing(&service.runtime().settings().serve.callback_hosts.0)
}

/// Checks an address that a client wants to be called at, and returns it as it is called.
///
/// A name that resolves to an internal address is detected at the call, because it can change until then.
pub(crate) fn check(service: &Service, url: &str) -> Result<String, Refusal> {
    let checked = allowed(service).check(url);
    checked.map(String::from).map_err(|error| {
        Refusal::invalid(format!(
            "cannot call this address: {error}; the operator can allow internal hosts in serve.callback_hosts"
        ))
    })
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
            let why = with_causes(&error.without_url());
            assert!(why.contains("leads to no public address"), "{why}");
        }
        let called = inside.accept().unwrap_err();
        assert_eq!(called.kind(), std::io::ErrorKind::WouldBlock, "nobody came");
        assert!(names.0.lock().unwrap().is_empty(), "each connection looks the name up");
    }
}
