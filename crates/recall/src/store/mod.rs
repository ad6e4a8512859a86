//! The index in the database, in the same layout on SQLite and Postgres.
//!
//! Enter at [`StoredIndex`]. A *space* has the items of one scope and one kind; they are numbered, and a term's list is
//! stored in blocks of packed postings; the newest items wait in a few rows ([`recent`]). Invariant: items, lists,
//! statistics and vectors change in one transaction, under a lock on the space. The ranking itself is [`crate::bm25`]
//! in this process, so both databases return the same list. Deliberately absent: a database's own full-text search,
//! whose ranking counts what other tenants keep.

mod filters;
mod find;
mod generation;
mod lists;
mod nearest;
mod pgvector;
mod put;
mod recent;
mod remove;
mod space;
mod vectors;

use std::sync::Arc;

use perihelion_database::Database;

pub use self::generation::{Generation, Pending};
pub use self::put::Kept;
use self::{filters::Filters, nearest::Cache, pgvector::Pgvector};
use crate::{Found, Result, Scope, Search};

/// An index in a database; cheap to clone.
#[derive(Clone)]
pub struct StoredIndex {
    database: Database,
    vectors: Arc<Cache>,
    pgvector: Arc<Pgvector>,
    filters: Arc<Filters>,
}

impl StoredIndex {
    pub fn new(database: Database) -> Self {
        let (vectors, pgvector, filters) = <(Arc<Cache>, _, _)>::default();
        Self { database, vectors, pgvector, filters }
    }

    /// Bounds the bytes of vectors that this process keeps for searches by meaning, 256 MiB unless set here.
    ///
    /// Larger spaces are ranked by a Postgres with pgvector; without it, the last searched one is still cached.
    #[must_use]
    pub fn keeping_vectors(self, bytes: usize) -> Self {
        Self { vectors: Arc::new(Cache::of(bytes)), ..self }
    }

    pub fn database(&self) -> &Database {
        &self.database
    }

    pub fn database_of(&self, scope: &Scope) -> Database {
        self.database.of_tenant(scope.tenant())
    }

    /// Finds matching items, best first; equal ones in the order in which they were stored.
    pub async fn search(&self, search: &Search) -> Result<Found> {
        let caches = (&*self.vectors, &*self.pgvector, &*self.filters);
        Box::pin(find::search(&self.database, caches, search)).await
    }
}
