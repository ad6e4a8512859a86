//! Bodies that do not come: a peer may take its time for the whole of one, and not for its next piece.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::patience::Patience;

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
    patience: Patience,
}

impl Paced {
    pub(crate) fn new(body: Incoming, patience: Duration) -> Self {
        Self { body, patience: Patience::new(patience) }
    }
}

impl Body for Paced {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        let limit = self.patience.limit;
        self.patience.bound(frame, cx).map(|frame| match frame {
            Some(frame) => frame.map(|frame| frame.map_err(Error::Peer)),
            None => Some(Err(Error::Stalled(limit))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
