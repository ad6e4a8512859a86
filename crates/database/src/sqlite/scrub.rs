//! Emptying the write-ahead log, so that no byte of what was deleted stays there.

use std::time::Duration;

use sqlx::AssertSqlSafe;

use super::{file::File, writing::PATIENCE};
use crate::{Error, clock};

/// How long it waits for those who read what was there before, in all and at a time.
const SCRUBBING: Duration = Duration::from_secs(5);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

impl File {
    /// Moves the write-ahead log into the file and empties it, so that no byte of what was deleted stays there.
    ///
    /// Waits for others who read what was there before, for some seconds and letting everybody write meanwhile.
    ///
    /// # Errors
    /// [`Error::Unscrubbed`] when they do not end; [`Error::Failed`], [`Error::Full`].
    pub async fn scrub(&self) -> Result<(), Error> {
        if self.is_in_memory {
            return Ok(());
        }
        let deadline = clock::monotonic() + SCRUBBING;
        while !self.empty_log().await? {
            if clock::monotonic() >= deadline {
                return Err(Error::Unscrubbed { url: self.shown().to_owned() });
            }
            clock::sleep(BETWEEN_ATTEMPTS).await;
        }
        Ok(())
    }

    /// Tries to empty the log, and tells whether nobody was in the way.
    async fn empty_log(&self) -> Result<bool, Error> {
        let mut writer = self.writer().await?;
        let connection = writer.connection()?;
        let wait =
            |time: Duration| AssertSqlSafe(format!("PRAGMA busy_timeout = {}", time.as_millis()));
        // Nobody else writes as long as this waits.
        sqlx::raw_sql(wait(BETWEEN_ATTEMPTS)).execute(&mut *connection).await?;
        let done: Result<(i64, i64, i64), _> =
            sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut *connection).await;
        sqlx::raw_sql(wait(PATIENCE)).execute(connection).await?;
        let (was_busy, ..) = done.map_err(|error| self.refine(error))?;
        Ok(was_busy == 0)
    }
}
