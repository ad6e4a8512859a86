//! What a service of threads keeps beside the threads: runs as clients ask for them, metadata, assistants, items.
//!
//! Enter at [`Kept`]. Invariants: of one thread at most one run is driven, whichever processes begin one, because an
//! index says so; a run's events are those of its thread's log between two marks, taken in the statements that begin
//! and end it; each statement acts for the tenant, but for those that look for what is due, silent or to be stopped, of any
//! tenant. Deliberately absent: what a run does, and any waiting.

mod assistants;
mod begun;
mod crons;
mod deliveries;
mod driven;
mod ends;
mod error;
mod fleet;
mod items;
mod listing;
mod pushes;
mod reading;
mod runs;
mod seal;
mod sql;
mod stops;
mod threads;
mod words;

pub use assistants::{Assistant, AssistantFilter};
pub use begun::RunSteps;
pub use crons::{Cron, CronFilter, CronOrder};
pub use deliveries::{Delivery, NewDelivery};
pub use ends::Ended;
pub use error::Error;
pub use fleet::Driver;
pub use items::{Item, ItemFilter};
pub use listing::{COUNTED, Listed, ThreadFilter, ThreadOrder};
pub use runs::{Begin, NewRun, Run, RunFilter};
pub use seal::Seal;
pub use threads::ThreadMeta;
pub use words::{Cancel, Multitask, RunStatus};

use std::sync::Arc;

use perihelion_database::Database;

/// The rows of one tenant.
///
/// Every method fails with [`Error::Database`] when the database refuses a statement or cannot be reached, and with
/// [`Error::Sealed`] when a value cannot be encrypted or read again.
#[derive(Clone)]
pub struct Kept {
    database: Database,
    tenant: String,
    seal: Option<Arc<dyn Seal>>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

impl Kept {
    /// Makes the view of a tenant on a database.
    pub fn new(database: Database, tenant: &str) -> Self {
        Self { database, tenant: tenant.to_owned(), seal: None }
    }

    /// Makes the view of another tenant on the same database.
    #[must_use]
    pub fn for_tenant(&self, tenant: &str) -> Self {
        Self { tenant: tenant.to_owned(), ..self.clone() }
    }

    /// Returns the database as the tenant sees it.
    fn of_tenant(&self) -> Database {
        self.database.of_tenant(&self.tenant)
    }

    /// Returns the database as those see it who look after the runs of all tenants.
    fn of_all_tenants(&self) -> Database {
        self.database.of_all_tenants()
    }

    /// Begins a statement that grows by conditions.
    fn statement(&self, text: &str) -> sql::Statement {
        sql::Statement::new(self.database.dialect(), text)
    }

    /// Returns whether the database answers.
    pub async fn check(&self) -> Result<(), Error> {
        let one = perihelion_database::query(
            "SELECT count(*) FROM service_cron WHERE enabled AND next_at IS NULL",
        );
        self.database.fetch_all(&one).await?;
        Ok(())
    }

    /// Closes the connections.
    pub async fn close(&self) {
        self.database.close().await;
    }
}
