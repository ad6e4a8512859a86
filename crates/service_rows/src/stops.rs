//! Threads whose run somebody wants ended, for the process that holds them to hear of.
//!
//! A request names the holder that is meant by its fencing token, so that one which comes late ends nobody else's run.

use chrono::{DateTime, Utc};
use perihelion_database::query;
use uuid::Uuid;

use crate::{Error, Kept};

impl Kept {
    /// Asks the process that holds a thread to end its run; returns whether the thread is held.
    pub async fn ask_holder(&self, thread: Uuid, now: DateTime<Utc>) -> Result<bool, Error> {
        let ask = query(
            "INSERT INTO thread_stop (thread_id, tenant, fence, asked_at) \
             SELECT id, tenant, fence, $3 FROM thread WHERE id = $1 AND tenant = $2 AND status = 'busy' \
             ON CONFLICT (thread_id) DO UPDATE SET fence = excluded.fence, asked_at = excluded.asked_at",
        );
        let ask = ask.bind(thread).bind(self.tenant.as_str()).bind(now);
        Ok(self.of_tenant().execute(&ask).await? == 1)
    }

    /// Returns the threads of all tenants whose present holder is asked to end its run.
    pub async fn asked_of_holders(&self) -> Result<Vec<Uuid>, Error> {
        let find = query(
            "SELECT s.thread_id FROM thread_stop s JOIN thread t ON t.id = s.thread_id \
             WHERE t.fence = s.fence AND t.status = 'busy'",
        );
        let rows = self.of_all_tenants().fetch_all(&find).await?;
        rows.iter().map(|row| Ok(row.get(0)?)).collect()
    }

    /// Forgets what the holder of a thread was asked.
    pub async fn forget_asked(&self, thread: Uuid) -> Result<(), Error> {
        let forget = query("DELETE FROM thread_stop WHERE thread_id = $1 AND tenant = $2");
        self.of_tenant().execute(&forget.bind(thread).bind(self.tenant.as_str())).await?;
        Ok(())
    }
}
