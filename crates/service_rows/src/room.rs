//! How much a tenant has under way.

use crate::sql::Statement;
use crate::{Error, Kept};

impl Kept {
    /// Counts the tenant's runs that are under way or wait, no further than `most`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn count_open_runs(&self, most: u32) -> Result<u32, Error> {
        let mut find = Statement::new(
            self.database.dialect(),
            "SELECT COUNT(*) FROM (SELECT 1 FROM service_run WHERE status IN ('pending', 'running') AND tenant = ",
        );
        find.value(self.tenant.as_str()).text(" LIMIT ").value(most).text(") AS open");
        let row = self.of_tenant().fetch_optional(&find.build()).await?;
        let count = row.map(|row| row.get::<i64>(0)).transpose()?.unwrap_or_default();
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}
