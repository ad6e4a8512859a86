//! The limits of a tenant: requests per minute, concurrent requests and deliveries, and login attempts.
//!
//! Requests are counted by tenant, not by address or credential; logins by tenant and name, for known and unknown
//! users, and in total. Names share a fixed number of counters, which a secret of the process selects: attempts with
//! other names neither reset a counter nor add one.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use parking_lot::Mutex;

use crate::http::Refusal;
use perihelion_engine::clock::Rate;
use perihelion_people::normal_name;
use perihelion_service::Service;

/// The keys for counting requests and logins.
const MINUTE: Duration = Duration::from_secs(60);

/// Tenants that are counted; of more, all begin again.
const TENANTS: usize = 10_000;

pub(super) struct Rates {
    per_minute: Option<NonZeroU32>,
    tenants: Mutex<HashMap<String, Arc<Rate>>>,
}

impl Rates {
    pub(super) fn new(per_minute: Option<u32>) -> Self {
        Self { per_minute: per_minute.and_then(NonZeroU32::new), tenants: Mutex::default() }
    }

    /// Counts a request of a tenant, and returns how it is refused if it is one too many.
    pub(super) fn refusal(&self, tenant: &str) -> Option<Response> {
        let most = self.per_minute?;
        let rate = {
            let mut tenants = self.tenants.lock();
            if tenants.len() >= TENANTS && !tenants.contains_key(tenant) {
                tenants.clear();
            }
            let new = || Arc::new(Rate::new(most, MINUTE));
            Arc::clone(tenants.entry(tenant.to_owned()).or_insert_with(new))
        };
        let seconds = early(&rate)?;
        Some(refused("requests of this tenant", seconds))
    }
}

/// Counts one more, and returns after how many seconds it were not too many, if it is.
fn early(rate: &Rate) -> Option<u64> {
    Some(rate.count().err()?.as_secs() + 1)
}

/// Rejects what exceeds a limit, with the time of the next attempt.
pub(super) fn refused(what: &str, seconds: u64) -> Response {
    too_many(format!("too many {what}; send the next one in {seconds} s"), seconds)
}

fn too_many(why: String, seconds: u64) -> Response {
    let mut refused = Refusal(StatusCode::TOO_MANY_REQUESTS, why).into_response();
    refused.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    refused
}

/// Adds the time of the next attempt to every refusal of too many requests.
pub(super) async fn with_time(mut response: Response, service: &Service) -> Response {
    let is_stated = response.headers().contains_key(header::RETRY_AFTER);
    if response.status() == StatusCode::TOO_MANY_REQUESTS && !is_stated {
        let seconds = service.until_room().await.as_secs();
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// How many of something are under way at the same time, of one tenant and in all.
#[derive(Default)]
struct Counts {
    in_all: u32,
    by_tenant: HashMap<String, u32>,
}

#[derive(Clone)]
pub(crate) struct Places {
    of_tenant: u32,
    in_all: u32,
    counts: Arc<Mutex<Counts>>,
}

/// A place that is used until its last copy is dropped.
#[derive(Clone)]
pub(crate) struct Place(#[expect(dead_code, reason = "only held")] Arc<Taken>);

struct Taken {
    tenant: String,
    counts: Arc<Mutex<Counts>>,
}

impl Places {
    /// Bounds how many one tenant takes, and all together.
    pub(crate) fn new(of_tenant: u32, in_all: u32) -> Self {
        Self { of_tenant, in_all, counts: Arc::default() }
    }

    pub(crate) fn free(&self) -> u32 {
        self.in_all.saturating_sub(self.counts.lock().in_all)
    }

    /// Returns the tenants that have reached their limit.
    pub(crate) fn full(&self) -> Vec<String> {
        let counts = self.counts.lock();
        let full = counts.by_tenant.iter().filter(|(_, taken)| **taken >= self.of_tenant);
        full.map(|(tenant, _)| tenant.clone()).collect()
    }

    pub(crate) fn take(&self, tenant: &str) -> Option<Place> {
        let mut counts = self.counts.lock();
        let of_tenant = counts.by_tenant.get(tenant).copied().unwrap_or_default();
        if of_tenant >= self.of_tenant || counts.in_all >= self.in_all {
            return None;
        }
        counts.in_all += 1;
        counts.by_tenant.insert(tenant.to_owned(), of_tenant + 1);
        let counts = Arc::clone(&self.counts);
        Some(Place(Arc::new(Taken { tenant: tenant.to_owned(), counts })))
    }

    /// Takes a place for an open request of a tenant; a connection that outlives its answer, such as a socket, keeps it.
    pub(super) fn for_request(&self, tenant: &str) -> Result<Place, Box<Response>> {
        self.take(tenant).ok_or_else(|| {
            let most = self.of_tenant;
            let why = format!("{most} requests of this tenant are open, of {most}; close a stream");
            Box::new(too_many(why, AGAIN))
        })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        counts.in_all = counts.in_all.saturating_sub(1);
        if let Some(of_tenant) = counts.by_tenant.get_mut(&self.tenant) {
            *of_tenant = of_tenant.saturating_sub(1);
            if *of_tenant == 0 {
                counts.by_tenant.remove(&self.tenant);
            }
        }
    }
}

/// Seconds after which a caller with too many open requests can try again.
const AGAIN: u64 = 5;

pub(super) fn keeping(place: Option<Place>, response: Response) -> Response {
    let Some(place) = place else { return response };
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        Body::from_stream(body.into_data_stream().inspect(move |_| {
            // Dropped with the stream.
            let _ = &place;
        }))
    })
}

/// Counters that the names share.
const COUNTERS: u64 = 4_096;

/// Attempts per name and minute.
const OF_ONE: u32 = 10;

/// Attempts for all names per minute.
const OF_ALL: u32 = 300;

pub(super) struct Logins {
    of_one: Vec<Rate>,
    of_all: Rate,
    secret: RandomState,
}

impl Logins {
    pub(super) fn new() -> Self {
        let counter = |most| Rate::new(NonZeroU32::new(most).unwrap_or(NonZeroU32::MIN), MINUTE);
        let of_one = (0..COUNTERS).map(|_| counter(OF_ONE)).collect();
        Self { of_one, of_all: counter(OF_ALL), secret: RandomState::new() }
    }

    /// Counts one more of a name, and returns how it is refused if it is one too many.
    pub(super) fn refusal(&self, tenant: &str, name: &str) -> Option<Response> {
        let place = self.secret.hash_one((tenant, normal_name(name))) % COUNTERS;
        let of_one = usize::try_from(place).ok().and_then(|place| self.of_one.get(place));
        // In this order, so that guesses at one name do not use up the attempts of the others.
        let seconds = of_one.and_then(early).or_else(|| early(&self.of_all))?;
        Some(refused("logins", seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.04
    #[test]
    fn each_tenant_has_a_separate_rate_and_receives_a_retry_time() {
        let rates = Rates::new(Some(2));
        assert!(rates.refusal("a").is_none() && rates.refusal("a").is_none());
        let refused = rates.refusal("a").unwrap();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        let later = refused.headers()[header::RETRY_AFTER].to_str().unwrap();
        assert!((1..=60).contains(&later.parse::<u64>().unwrap()), "{later}");
        assert!(rates.refusal("b").is_none());
        let free = Rates::new(None);
        assert!((0..1_000).all(|_| free.refusal("a").is_none()));
    }

    #[test]
    fn no_tenant_takes_all_places_and_returned_places_are_free() {
        let places = Places::new(8, 32);
        let mut kept: Vec<Place> = (0..32).filter_map(|_| places.take("a")).collect();
        assert_eq!((kept.len(), places.full()), (8, vec!["a".to_owned()]));
        assert_eq!(places.free(), 24);
        for tenant in ["b", "c", "d", "e"] {
            kept.extend((0..8).filter_map(|_| places.take(tenant)));
        }
        assert_eq!(places.free(), 0);
        assert!(places.take("f").is_none());
        kept.pop();
        assert!(places.take("f").is_some());
        kept.clear();
        assert_eq!((places.free(), places.full()), (32, Vec::new()));
    }

    /// S3.04
    #[test]
    fn a_place_is_free_again_when_the_last_who_keeps_it_lets_go() {
        let requests = Places::new(1, u32::MAX);
        let place = requests.for_request("a").ok().unwrap();
        let refused = requests.for_request("a").err().unwrap();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(refused.headers().contains_key(header::RETRY_AFTER));
        assert!(requests.take("b").is_some(), "another tenant has places of its own");
        let socket = place.clone();
        drop(place);
        assert!(requests.take("a").is_none(), "the socket is still open");
        let body = Body::from_stream(futures::stream::pending::<Result<String, std::io::Error>>());
        let streamed = keeping(Some(socket), Response::new(body));
        assert!(requests.take("a").is_none(), "the stream is still open");
        drop(streamed);
        assert!(requests.take("a").is_some());
    }

    /// S3.04
    #[test]
    fn guesses_block_one_name_and_too_many_guesses_block_all_logins() {
        let logins = Logins::new();
        for _ in 0..OF_ONE {
            assert!(logins.refusal("a", "Ann").is_none());
        }
        for same in ["ann", " ANN "] {
            let refused = logins.refusal("a", same).unwrap();
            assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
            assert!(refused.headers().contains_key(header::RETRY_AFTER));
        }
        // One of them may share the counter.
        let other = ["b", "c", "d"].iter().any(|tenant| logins.refusal(tenant, "ann").is_none());
        assert!(other, "another tenant has an Ann of its own");
        let others = (0..2 * OF_ALL).map(|one| logins.refusal("a", &one.to_string()));
        let taken = others.filter(Option::is_none).count();
        assert!((100..500).contains(&taken), "{taken}");
    }
}
