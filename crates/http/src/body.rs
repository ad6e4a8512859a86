//! Bodies that do not come: a peer may take its time for the whole of one, and not for its next piece.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use perihelion_clock as clock;

/// Why the body of a request was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the body of the request paused for {} s; send it without a pause", .0.as_secs_f64())]
    Stalled(Duration),
    #[error(transparent)]
    Peer(#[from] hyper::Error),
}

/// A body with a time limit for each piece.
pub(crate) struct Paced {
    body: Incoming,
    patience: Duration,
    waits: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Paced {
    pub(crate) fn new(body: Incoming, patience: Duration) -> Self {
        Self { body, patience, waits: None }
    }
}

impl Body for Paced {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.waits = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Error::Peer)));
        }
        let patience = self.patience;
        let waits = self.waits.get_or_insert_with(|| Box::pin(clock::sleep(patience)));
        match waits.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Err(Error::Stalled(patience)))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
