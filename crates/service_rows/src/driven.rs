//! Runs as those who drive them see them: of every tenant.

use uuid::Uuid;

use crate::runs::COLUMNS;
use crate::sql::Statement;
use crate::{Error, Kept, Run};

impl Kept {
    /// Returns a run by its id, whoever's it is: for those who drive runs, never for those who ask.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn run_of_any_tenant(&self, id: Uuid) -> Result<Option<Run>, Error> {
        let mut find = Statement::new(self.database.dialect(), "SELECT ");
        find.text(COLUMNS).text(" FROM service_run WHERE id = ").value(id);
        self.database.fetch_optional(&find.build()).await?.as_ref().map(Run::read).transpose()
    }
}
