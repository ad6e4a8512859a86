//! How many requests of a tenant are open at the same time: what is answered, streams and sockets included.

use axum::body::{Body, HttpBody as _};
use axum::response::Response;
use futures::StreamExt as _;

use super::rates::too_many;
use crate::http::{Place, Places};

/// Seconds after which who has too many open is to come again.
const AGAIN: u64 = 5;

/// The open requests of all tenants of one process; what outlives its answer, such as a socket, keeps its place too.
pub(super) struct OpenRequests(Option<Places>);

impl OpenRequests {
    pub(super) fn new(most: Option<u32>) -> Self {
        Self(most.map(|most| Places::new(most, u32::MAX)))
    }

    /// Takes a place for a request of a tenant; none where they are not counted.
    ///
    /// # Errors
    /// How the request is refused when it is one too many.
    pub(super) fn take(&self, tenant: &str) -> Result<Option<Place>, Box<Response>> {
        let Some(places) = &self.0 else { return Ok(None) };
        let place = places.take(tenant).ok_or_else(|| {
            let most = places.of_tenant();
            let why = format!("{most} requests of this tenant are open, of {most}; close a stream");
            Box::new(too_many(why, AGAIN))
        })?;
        Ok(Some(place))
    }
}

/// Keeps a place for as long as the body of a response lasts.
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
    use axum::http::{StatusCode, header};

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
        assert!(requests.take("a").is_err(), "the socket is still open");
        let body = Body::from_stream(futures::stream::pending::<Result<String, std::io::Error>>());
        let streamed = keeping(Some(socket), Response::new(body));
        assert!(requests.take("a").is_err(), "the stream is still open");
        drop(streamed);
        assert!(requests.take("a").is_ok());
        assert!(OpenRequests::new(None).take("a").is_ok_and(|place| place.is_none()));
    }
}
