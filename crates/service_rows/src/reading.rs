//! Asking for runs and reading them, as every question for them does.

use perihelion_database::Row;

use crate::runs::SELECT;
use crate::sql::Statement;
use crate::{Error, Kept, Run};

impl Kept {
    /// Begins a question for runs of the tenant, for conditions and an order to follow.
    pub(crate) fn select_runs(&self) -> Statement {
        let mut find = self.statement(SELECT);
        find.text(" FROM service_run WHERE tenant = ").value(self.tenant.as_str());
        find
    }

    /// Asks for runs of the tenant.
    pub(crate) async fn list_runs(&self, find: Statement) -> Result<Vec<Run>, Error> {
        let found = self.of_tenant().fetch_all(&find.build()).await?;
        found.iter().map(|row| self.read_run(row)).collect()
    }

    /// Asks for one run of the tenant.
    pub(crate) async fn one_run(&self, find: Statement) -> Result<Option<Run>, Error> {
        let found = self.of_tenant().fetch_optional(&find.build()).await?;
        found.as_ref().map(|row| self.read_run(row)).transpose()
    }

    /// Reads a run with what was asked for, what its client says of it, and why it failed.
    pub(crate) fn read_run(&self, row: &Row) -> Result<Run, Error> {
        let run = Run::read(row)?;
        let kwargs = self.opened("run", run.id, run.kwargs)?;
        let metadata = self.opened("run metadata", run.id, run.metadata)?;
        let error = run.error.map(|why| self.opened("run error", run.id, why)).transpose()?;
        Ok(Run { kwargs, metadata, error, ..run })
    }
}
