//! Ctrl-C and SIGTERM: the first asks for an orderly stop, the second ends at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{Error, Result};

#[derive(Clone, Debug)]
pub struct Signals {
    stop: CancellationToken,
    abort: CancellationToken,
}

impl Signals {
    /// Takes the signals over from here to the end of the process.
    ///
    /// # Errors
    /// [`Error::Signals`] when the system refuses.
    pub fn listen() -> Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
        let signals = Self { stop: CancellationToken::new(), abort: CancellationToken::new() };
        let shared = signals.clone();
        // Ends with the process, or after the second signal.
        tokio::spawn(async move {
            for token in [&shared.stop, &shared.abort] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                token.cancel();
            }
        });
        Ok(signals)
    }

    /// Awaits work; [`Error::Stopped`] if the first signal comes before its end.
    pub async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.stopped() => Err(Error::Stopped),
            done = work => Ok(done),
        }
    }

    /// Awaits work; [`Error::Stopped`] if the second signal comes before its end.
    pub async fn unless_aborted<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.aborted() => Err(Error::Stopped),
            done = work => Ok(done),
        }
    }

    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    pub async fn aborted(&self) {
        self.abort.cancelled().await;
    }

    /// Returns a token that the first signal cancels; cancelling it is no signal.
    pub fn stop_token(&self) -> CancellationToken {
        self.stop.child_token()
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }
}
