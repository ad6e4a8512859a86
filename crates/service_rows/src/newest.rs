//! The runs that changed last.

use uuid::Uuid;

use crate::runs::COLUMNS;
use crate::sql::Statement;
use crate::{Error, Kept, Run};

impl Kept {
    /// Lists the runs of the tenant, or of one of its threads, that changed last, newest change first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn newest_runs(&self, thread: Option<Uuid>, most: u32) -> Result<Vec<Run>, Error> {
        let mut find = Statement::new(self.database.dialect(), "SELECT ");
        find.text(COLUMNS).text(" FROM service_run WHERE tenant = ").value(self.tenant.as_str());
        if let Some(thread) = thread {
            find.text(" AND thread_id = ").value(thread);
        }
        find.text(" ORDER BY updated_at DESC, id DESC").page(most, 0);
        self.of_tenant()
            .fetch_all(&find.build())
            .await?
            .iter()
            .map(|row| self.read_run(row))
            .collect()
    }
}
