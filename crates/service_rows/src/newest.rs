//! The runs that changed last.

use uuid::Uuid;

use crate::{Error, Kept, Run};

impl Kept {
    /// Lists the runs of the tenant, or of one of its threads, that changed last, newest change first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn newest_runs(&self, thread: Option<Uuid>, most: u32) -> Result<Vec<Run>, Error> {
        let mut find = self.select_runs();
        if let Some(thread) = thread {
            find.text(" AND thread_id = ").value(thread);
        }
        find.text(" ORDER BY updated_at DESC, id DESC").page(most, 0);
        self.list_runs(&self.of_tenant(), find).await
    }
}
