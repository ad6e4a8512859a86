//! Authentication and permissions: users, sessions, API keys, tokens of other issuers, and the audit log.
//!
//! Enter at [`People`], on a [`perihelion_database::Database`]. The result of any authentication is one [`Principal`]:
//! a tenant, a user, and the permissions. Invariant: a secret is never stored, only its hash. Every row has a tenant,
//! and every query names one, as its handle does. Only the owner of a secret and expired rows are searched in all
//! tenants. Deliberately absent: HTTP (cookies, headers, status codes) and threads.

mod approvals;
mod audit;
mod error;
mod jwt;
mod keys;
mod principal;
mod secret;
mod sessions;
mod sign_on;
mod spending;
mod users;

pub use approvals::{ApprovalRequest, ApprovalStatus};
pub use audit::{AuditEntry, AuditQuery, Change, far};
pub use error::{Error, Result};
pub use jwt::{JwtRules, JwtVerifier};
pub use keys::{ApiKey, CreatedKey, NewKey};
pub use principal::{Principal, ProvedBy, Scope};
pub use secret::Secret;
pub use sessions::Session;
pub use sign_on::{Identity, IdentityRules, LoginAttempt};
pub use spending::{EndedRun, SPENDING_DAYS, Taken, TenantUsage};
pub use users::{NewUser, User, normal_name};

use perihelion_database::Database;

/// Users, sessions, keys and audit of one database; cheap to clone.
#[derive(Clone)]
pub struct People {
    database: Database,
}

impl People {
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    pub async fn close(self) {
        self.database.close().await;
    }

    fn of(&self, tenant: &str) -> Database {
        self.database.of_tenant(tenant)
    }

    /// Returns the database as the whole service sees it.
    fn of_all(&self) -> Database {
        self.database.of_all_tenants()
    }
}
