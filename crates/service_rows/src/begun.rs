//! The runs of a thread in the order in which they began.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::runs::COLUMNS;
use crate::sql::Statement;
use crate::{Error, Kept, Run};

impl Kept {
    /// Returns the run of a thread that began first, or first after another one, by its first event, when it was asked
    /// for, and its id.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn next_begun(
        &self,
        thread: Uuid,
        after: Option<(u64, DateTime<Utc>, Uuid)>,
    ) -> Result<Option<Run>, Error> {
        let mut find = Statement::new(self.database.dialect(), "SELECT ");
        find.text(COLUMNS).text(" FROM service_run WHERE thread_id = ").value(thread);
        find.text(" AND tenant = ").value(self.tenant.as_str());
        find.text(" AND first_event IS NOT NULL");
        if let Some((first, asked, id)) = after {
            let first = i64::try_from(first).unwrap_or(i64::MAX);
            find.text(" AND (first_event, created_at, id) > (").value(first);
            find.text(", ").value(asked).text(", ").value(id).text(")");
        }
        find.text(" ORDER BY first_event, created_at, id LIMIT 1");
        self.database.fetch_optional(&find.build()).await?.as_ref().map(Run::read).transpose()
    }
}
