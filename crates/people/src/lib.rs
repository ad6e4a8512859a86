//! Who asks, and what they may do: users, sessions, API keys, tokens of other issuers, and the audit.
//!
//! Enter at [`People`], on a [`perihelion_database::Database`]. Whatever way somebody proves who they are by, the
//! result is one [`Principal`]: a tenant, a user, and what is permitted. Invariant: a secret is never stored, only
//! what recognises it; every row has a tenant, and every question to the database names one, as its handle does: only who
//! somebody is by a secret, and what has run out, is looked for in all tenants. Deliberately absent: HTTP (cookies,
//! headers, status codes) and threads.

mod approvals;
mod audit;
mod error;
mod jwt;
mod keys;
mod principal;
mod secret;
mod sessions;
mod spending;
mod users;

pub use approvals::{ApprovalRequest, ApprovalStatus};
pub use audit::{AuditEntry, AuditQuery, Change, far};
pub use error::Error;
pub use jwt::{JwtRules, JwtVerifier};
pub use keys::{ApiKey, CreatedKey, NewKey};
pub use principal::{Principal, ProvedBy, Scope};
pub use secret::Secret;
pub use sessions::Session;
pub use spending::{EndedRun, SPENDING_DAYS, Taken, TakenByTenant};
pub use users::{NewUser, User};

use perihelion_database::Database;

/// Users, sessions, keys and audit of one database; cheap to clone.
#[derive(Clone)]
pub struct People {
    database: Database,
}

impl People {
    /// Uses a migrated database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Closes the connections of the database.
    pub async fn close(self) {
        self.database.close().await;
    }

    /// Returns the database as a tenant sees it.
    fn of(&self, tenant: &str) -> Database {
        self.database.of_tenant(tenant)
    }

    /// Returns the database as the whole service sees it.
    fn of_all(&self) -> Database {
        self.database.of_all_tenants()
    }
}
