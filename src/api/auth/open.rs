//! How many requests of a tenant are open at the same time: what is answered, streams and sockets included.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, HttpBody as _};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;

use crate::api::agent_server::Refusal;

/// Seconds after which who has too many open is to come again.
const AGAIN: u32 = 5;

/// The open requests of all tenants of one process.
pub(super) struct OpenRequests {
    most: Option<u32>,
    tenants: Arc<Mutex<HashMap<String, u32>>>,
}

/// The place that a request takes until it is dropped; what outlives its answer, such as a socket, keeps it too.
#[derive(Clone)]
pub(in crate::api) struct Place(#[expect(dead_code, reason = "only held")] Arc<Taken>);

struct Taken {
    tenant: String,
    tenants: Arc<Mutex<HashMap<String, u32>>>,
}

impl OpenRequests {
    pub(super) fn new(most: Option<u32>) -> Self {
        Self { most, tenants: Arc::default() }
    }

    /// Takes a place for a request of a tenant; none where they are not counted.
    ///
    /// # Errors
    /// How the request is refused when it is one too many.
    pub(super) fn take(&self, tenant: &str) -> Result<Option<Place>, Box<Response>> {
        let Some(most) = self.most else { return Ok(None) };
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let open = tenants.entry(tenant.to_owned()).or_default();
        if *open >= most {
            let why = format!("{open} requests of this tenant are open, of {most}; close a stream");
            let mut refused = Refusal(StatusCode::TOO_MANY_REQUESTS, why).into_response();
            refused.headers_mut().insert(header::RETRY_AFTER, AGAIN.into());
            return Err(Box::new(refused));
        }
        *open += 1;
        let tenants = Arc::clone(&self.tenants);
        Ok(Some(Place(Arc::new(Taken { tenant: tenant.to_owned(), tenants }))))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = tenants.get_mut(&self.tenant) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                tenants.remove(&self.tenant);
            }
        }
    }
}

/// Keeps a place for as long as the body of a response goes on.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.04
    #[test]
    fn a_place_is_free_again_when_the_last_who_keeps_it_lets_go() {
        let requests = OpenRequests::new(Some(1));
        let place = requests.take("a").ok().flatten().unwrap();
        let refused = requests.take("a").err().unwrap();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(refused.headers().contains_key(header::RETRY_AFTER));
        assert!(requests.take("b").is_ok(), "another tenant has places of its own");
        let socket = place.clone();
        drop(place);
        assert!(requests.take("a").is_err(), "the socket goes on");
        let body = Body::from_stream(futures::stream::pending::<Result<String, std::io::Error>>());
        let streamed = keeping(Some(socket), Response::new(body));
        assert!(requests.take("a").is_err(), "the stream goes on");
        drop(streamed);
        assert!(requests.take("a").is_ok());
        assert!(OpenRequests::new(None).take("a").is_ok_and(|place| place.is_none()));
    }
}
