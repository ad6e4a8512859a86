//! Runs as those who drive them see them: of every tenant.

use perihelion_database::Row;
use uuid::Uuid;

use crate::runs::COLUMNS;
use crate::sql::Statement;
use crate::{Error, Kept, Run};

impl Kept {
    /// Reads a run with what was asked for.
    pub(crate) fn read_run(&self, row: &Row) -> Result<Run, Error> {
        let run = Run::read(row)?;
        let kwargs = self.opened("run", run.id, run.kwargs)?;
        Ok(Run { kwargs, ..run })
    }

    /// Returns a run by its id, no matter whose it is: for those who drive runs, never for those who ask.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn run_of_any_tenant(&self, id: Uuid) -> Result<Option<Run>, Error> {
        let mut find = Statement::new(self.database.dialect(), "SELECT ");
        find.text(COLUMNS).text(" FROM service_run WHERE id = ").value(id);
        let found = self.database.fetch_optional(&find.build()).await?;
        found.as_ref().map(|row| self.read_run(row)).transpose()
    }
}
