//! A time limit for a peer's next sign.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use perihelion_clock as clock;

/// A time limit that begins again with each sign of the peer.
pub(crate) struct Patience {
    pub limit: Duration,
    waits: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Patience {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, waits: None }
    }

    /// Passes on what the peer lets happen; `None` if nothing did within the limit.
    pub(crate) fn bound<T>(&mut self, sign: Poll<T>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if let Poll::Ready(sign) = sign {
            self.waits = None;
            return Poll::Ready(Some(sign));
        }
        let limit = self.limit;
        let waits = self.waits.get_or_insert_with(|| Box::pin(clock::sleep(limit)));
        waits.as_mut().poll(cx).map(|()| None)
    }
}
