//! How long the server may take: each wait for it has a bound, because a network that swallows packets tells nobody.

use std::{future::Future, time::Duration};

/// How long the server may be silent on a statement that a run waits for, or in greeting: well within a lease.
pub const SILENCE: Duration = Duration::from_secs(10);

/// Waits for the server's answer for so long; then it counts as broken off.
pub async fn within<T, E: From<sqlx::Error>>(
    bound: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match tokio::time::timeout(bound, work).await {
        Ok(result) => result,
        Err(_) => {
            let text = format!("the server did not answer within {bound:?}");
            let silent = std::io::Error::new(std::io::ErrorKind::TimedOut, text);
            Err(sqlx::Error::Io(silent).into())
        }
    }
}
