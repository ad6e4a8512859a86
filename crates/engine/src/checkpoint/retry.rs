//! Writing what is known to nobody else.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use perihelion_database as database;

use super::Error;
use crate::clock;

/// Waits for a database that is away: somewhat longer than a lease, after which the thread may be another's.
const WAITS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(250))
    .with_max_delay(Duration::from_secs(4))
    .with_total_delay(Some(Duration::from_secs(20)))
    .without_max_times();

/// Writes to a database; the outcome of an effect is offered again for a while when the database is away.
///
/// Nobody else knows it: were it lost, a call would be paid again, or a person asked what became of it.
///
/// # Errors
/// Whatever `write` returned last.
pub(super) async fn retry<F>(is_outcome: bool, write: impl Fn() -> F) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>>,
{
    let mut waits = WAITS.build();
    loop {
        match write().await {
            Err(error) if is_outcome && is_away(&error) => match waits.next() {
                Some(wait) => {
                    tracing::debug!(%error, "an outcome is kept until the database is back");
                    clock::sleep(wait).await;
                }
                None => return Err(error),
            },
            written => return written,
        }
    }
}

/// Tells a database that will be back from one that somebody has to make room in.
fn is_away(error: &Error) -> bool {
    error.is_passing() && !matches!(error, Error::Database(database::Error::Full { .. }))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::ids::ThreadId;

    async fn written(is_outcome: bool, failures: u32, error: fn() -> Error) -> (bool, u32) {
        let asked = Cell::new(0);
        let write = || {
            asked.set(asked.get() + 1);
            let result = if asked.get() <= failures { Err(error()) } else { Ok(()) };
            async { result }
        };
        (retry(is_outcome, write).await.is_ok(), asked.get())
    }

    /// X2
    #[tokio::test]
    async fn an_outcome_waits_for_a_database_that_is_away_and_nothing_else_does() {
        let away = || {
            Error::from(database::Error::Unreachable { url: "db".into(), reason: "refused".into() })
        };
        let full =
            || Error::from(database::Error::Full { url: "db".into(), reason: "disk".into() });
        let fenced = || Error::Fenced { thread: ThreadId::new(), token: 1, current: 2 };
        assert_eq!(written(true, 1, away).await, (true, 2));
        assert_eq!(written(false, 1, away).await, (false, 1));
        assert_eq!(written(true, 1, full).await, (false, 1));
        assert_eq!(written(true, 1, fenced).await, (false, 1), "it is another's by now");
    }
}
