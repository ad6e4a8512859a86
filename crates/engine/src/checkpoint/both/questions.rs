//! What threads ask people.

use async_trait::async_trait;
use perihelion_database::query;

use super::{
    super::{EffectStatus, Encoded, Error, OpenInterrupt, Questions, checksum},
    Backend, OwnJournal, decode, info,
};
use crate::ids::{InterruptId, ThreadId};

#[async_trait]
impl<B: Backend> Questions for B {
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>, Error> {
        let rows = self.database().fetch_all(&query(OPEN).bind(thread.0)).await?;
        if rows.is_empty() {
            info(self.database(), thread).await?;
        }
        rows.iter().map(decode::open_interrupt).collect()
    }

    async fn asked_below(&self, interrupt: InterruptId) -> Result<Option<ThreadId>, Error> {
        let asked = query(ASKED_BELOW).bind(&interrupt.0.as_bytes()[..]);
        let row = self.database().fetch_short(&asked).await?;
        Ok(row.map(|row| row.get(0)).transpose()?.map(ThreadId))
    }

    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<(), Error> {
        if OwnJournal::answer(self, interrupt, answer).await? {
            return Ok(());
        }
        let known = query(KNOWN).bind(&interrupt.0.as_bytes()[..]);
        match self.database().fetch_short(&known).await? {
            Some(_) => Err(Error::InterruptClosed(interrupt)),
            None => Err(Error::UnknownInterrupt(interrupt)),
        }
    }
}

const OPEN: &str = "SELECT e.* FROM effect e JOIN thread t ON t.id = e.thread_id
     WHERE (t.id = $1 OR t.root_id = $1) AND e.kind = 'interrupt' AND e.status = 'started'
     ORDER BY e.started_at, e.thread_id, e.step, e.task, e.number";

const ASKED_BELOW: &str =
    "SELECT COALESCE(t.root_id, t.id) FROM effect e JOIN thread t ON t.id = e.thread_id
     WHERE e.kind = 'interrupt' AND e.key = $1 AND e.status = 'started'";

const KNOWN: &str = "SELECT 1 FROM effect WHERE kind = 'interrupt' AND key = $1";

/// Sums up how a question stands once it is answered; it is put once.
pub(in super::super) fn sum_of_answer(interrupt: InterruptId, answer: &Encoded) -> checksum::Sum {
    checksum::outcome(interrupt.0.as_bytes(), EffectStatus::Done, 1, Some(answer))
}
