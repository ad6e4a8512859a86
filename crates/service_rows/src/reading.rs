//! Asking for runs and reading them, as every question for them does.

use perihelion_database::{Database, Row};

use crate::runs::COLUMNS;
use crate::sql::Statement;
use crate::{Error, Kept, Run};

impl Kept {
    /// Begins a question for runs of the tenant, for conditions and an order to follow.
    pub(crate) fn select_runs(&self) -> Statement {
        let mut find = Statement::new(self.database.dialect(), "SELECT ");
        find.text(COLUMNS).text(" FROM service_run WHERE tenant = ").value(self.tenant.as_str());
        find
    }

    /// Begins a question for runs of all tenants, for a condition and more to follow.
    pub(crate) fn select_runs_of_all(&self) -> Statement {
        let mut find = Statement::new(self.database.dialect(), "SELECT ");
        find.text(COLUMNS).text(" FROM service_run WHERE ");
        find
    }

    /// Asks for runs, acting as `database` does.
    pub(crate) async fn list_runs(
        &self,
        database: &Database,
        find: Statement,
    ) -> Result<Vec<Run>, Error> {
        database.fetch_all(&find.build()).await?.iter().map(|row| self.read_run(row)).collect()
    }

    /// Asks for one run, acting as `database` does.
    pub(crate) async fn one_run(
        &self,
        database: &Database,
        find: Statement,
    ) -> Result<Option<Run>, Error> {
        let found = database.fetch_optional(&find.build()).await?;
        found.as_ref().map(|row| self.read_run(row)).transpose()
    }

    /// Reads a run with what was asked for, what its client says of it, and why it failed.
    fn read_run(&self, row: &Row) -> Result<Run, Error> {
        let run = Run::read(row)?;
        let kwargs = self.opened("run", run.id, run.kwargs)?;
        let metadata = self.opened("run metadata", run.id, run.metadata)?;
        let error = run.error.map(|why| self.opened("run error", run.id, why)).transpose()?;
        Ok(Run { kwargs, metadata, error, ..run })
    }
}
