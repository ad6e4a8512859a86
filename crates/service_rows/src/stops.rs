//! Threads whose run must end, for the processes that hold them.
//!
//! A request names its holder by the fencing token, so a late one never ends another run.

use chrono::{DateTime, Utc};
use perihelion_database::query;
use uuid::Uuid;

use crate::{Kept, Result};

impl Kept {
    /// Requests the end of a thread's run from its holder; returns whether the thread has one.
    pub async fn ask_holder(&self, thread: Uuid, now: DateTime<Utc>) -> Result<bool> {
        let ask = query(
            "INSERT INTO thread_stop (thread_id, tenant, fence, asked_at) \
             SELECT id, tenant, fence, $3 FROM thread WHERE id = $1 AND tenant = $2 AND status = 'busy' \
             ON CONFLICT (thread_id) DO UPDATE SET fence = excluded.fence, asked_at = excluded.asked_at",
        );
        Ok(self.change(ask.binds((thread, &self.tenant, now))).await? == 1)
    }

    /// Returns the threads of all tenants whose present holder is asked to end its run.
    pub async fn asked_of_holders(&self) -> Result<Vec<Uuid>> {
        let find = query(
            "SELECT s.thread_id FROM thread_stop s JOIN thread t ON t.id = s.thread_id \
             WHERE t.fence = s.fence AND t.status = 'busy'",
        );
        Ok(self.of_all_tenants().rows(&find).await?)
    }

    /// Deletes the request to the holder of a thread.
    pub async fn forget_asked(&self, thread: Uuid) -> Result<()> {
        let forget = query("DELETE FROM thread_stop WHERE thread_id = $1 AND tenant = $2");
        self.change(forget.binds((thread, &self.tenant))).await.map(drop)
    }
}
