//! How many requests a tenant may send: counted by tenant, not by address or credential.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::http::Refusal;
use perihelion_engine::clock::Rate;
use perihelion_service::Service;

/// What the limits of requests and logins count by.
pub(super) const MINUTE: Duration = Duration::from_secs(60);

/// Tenants that are counted; of more, all begin again.
const TENANTS: usize = 10_000;

/// The rates of all tenants of one process.
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
            let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
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
pub(super) fn early(rate: &Rate) -> Option<u64> {
    Some(rate.count().err()?.as_secs() + 1)
}

/// Refuses what is too much, and says when it is not.
pub(super) fn refused(what: &str, seconds: u64) -> Response {
    too_many(format!("too many {what}; send the next one in {seconds} s"), seconds)
}

/// Refuses what is too much for this reason, until some seconds have passed.
pub(super) fn too_many(why: String, seconds: u64) -> Response {
    let mut refused = Refusal(StatusCode::TOO_MANY_REQUESTS, why).into_response();
    refused.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    refused
}

/// Says in every refusal for being too much when to come again.
pub(super) async fn with_time(mut response: Response, service: &Service) -> Response {
    let is_stated = response.headers().contains_key(header::RETRY_AFTER);
    if response.status() == StatusCode::TOO_MANY_REQUESTS && !is_stated {
        let seconds = service.until_room().await.as_secs();
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
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
}
