//! The rows that a service stores next to the threads: runs as clients request them, metadata, assistants, items.
//!
//! Enter at [`Kept`]. Invariants: at most one run of a thread is driven, by any process, because of a unique index. A
//! run's events are those of its thread's log between two positions, which the statements that begin and end it read.
//! Each statement acts for its tenant, except those that search all tenants for due, silent or stopping rows.
//! Deliberately absent: the work of a run, and any waiting.

mod across;
mod assistants;
mod begun;
mod conversations;
mod crons;
mod deliveries;
mod driven;
mod ends;
mod error;
mod items;
mod listing;
mod runs;
mod seal;
mod sql;
mod threads;
mod words;

pub use across::{FoundRun, RunSearch};
pub use assistants::{Assistant, AssistantFilter};
pub use begun::RunSteps;
pub use crons::{Cron, CronFilter, CronOrder};
pub use deliveries::{Delivery, NewDelivery};
pub use driven::Driver;
pub use ends::{Ended, RunEnding};
pub use error::{Error, Result};
pub use items::{Item, ItemFilter};
pub use listing::{COUNTED, Listed, ThreadFilter, ThreadOrder};
pub use runs::{Begin, NewRun, Position, Run, RunFilter, RunTarget};
pub use threads::ThreadMeta;
pub use words::{Cancel, Multitask, RunStatus};

use std::sync::Arc;

use perihelion_database::{Database, Query, StoredRow, query};
use perihelion_engine::checkpoint::Keyring;

/// The rows of one tenant.
///
/// Every method fails with [`Error::Database`] when the database refuses a statement or cannot be reached, and with
/// [`Error::Sealed`] when a value cannot be encrypted or read again.
#[derive(Clone)]
pub struct Kept {
    database: Database,
    tenant: String,
    keys: Option<Arc<Keyring>>,
}

impl Kept {
    pub fn new(database: Database, tenant: &str) -> Self {
        Self { database, tenant: tenant.to_owned(), keys: None }
    }

    #[must_use]
    pub fn for_tenant(&self, tenant: &str) -> Self {
        Self { tenant: tenant.to_owned(), ..self.clone() }
    }

    fn of_tenant(&self) -> Database {
        self.database.of_tenant(&self.tenant)
    }

    /// Returns the database as those see it who look after the runs of all tenants.
    fn of_all_tenants(&self) -> Database {
        self.database.of_all_tenants()
    }

    fn statement(&self, text: &str) -> sql::Statement {
        sql::Statement::new(self.database.dialect(), text)
    }

    /// Begins a statement that reads the tenant's rows of a table, for conditions to follow.
    fn select<T: StoredRow>(&self, table: &str) -> sql::Statement {
        let columns = T::COLUMNS;
        let mut find = self.statement(&format!("SELECT {columns} FROM {table} WHERE tenant = "));
        find.value(&self.tenant);
        find
    }

    async fn change(&self, change: Query) -> Result<u64> {
        Ok(self.of_tenant().execute(&change).await?)
    }

    async fn change_of_all(&self, change: Query) -> Result<u64> {
        Ok(self.of_all_tenants().execute(&change).await?)
    }

    async fn counted(&self, find: sql::Statement) -> Result<u64> {
        Ok(self.of_tenant().row(&find.build()).await?.unwrap_or_default())
    }

    pub async fn check(&self) -> Result<()> {
        let one = query("SELECT count(*) FROM service_cron WHERE enabled AND next_at IS NULL");
        self.database.fetch_all(&one).await?;
        Ok(())
    }

    pub async fn close(&self) {
        self.database.close().await;
    }
}

#[cfg(test)]
mod plans_tests;
