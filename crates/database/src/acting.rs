//! For whom statements act: row-level security below every question.
//!
//! Each statement names its tenant in its `WHERE`; on Postgres every table with tenants' rows holds it to that as well.
//! Their policies (`of_tenant`, also forced upon the tables' owner) compare a row's tenant with the setting
//! `perihelion.tenant` of the connection. The pool of connections knows for whom each of them acts, and lends it to a
//! handle of another tenant only after the server has confirmed the new setting. Without one, rows are invisible and
//! cannot be written: a forgotten `WHERE` returns an empty result. Rows of a thread (`of_thread`) are visible together
//! with the thread.
//!
//! Code that works on all tenants (sweeps, pruning, finding the owner of a key) uses
//! [`crate::Database::of_all_tenants`], which sets `perihelion.all_tenants`. The engine's store acts for all tenants on
//! separate connections ([`crate::postgres::Connections::of_all_tenants`]): it addresses threads by IDs, whose tenant
//! the layers above compare. Superusers and roles with `BYPASSRLS` are exempt from every policy
//! ([`crate::Database::is_exempt`]); SQLite has no policies.

use std::fmt::Write as _;
use std::sync::Arc;

/// For whom the statements of a handle act.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Acting {
    /// Tables with policies look empty.
    #[default]
    Nobody,
    Tenant(Arc<str>),
    All,
}

impl Acting {
    /// Returns the statement after which a connection acts so.
    pub(crate) fn setting(&self) -> String {
        let all = if *self == Self::All { "on" } else { "off" };
        let tenant = match self {
            // No tenant's name holds what the server cannot keep.
            Self::Tenant(tenant) if !tenant.contains('\0') => tenant,
            _ => "",
        };
        // As digits, so that no setting of the server decides how it is read.
        let digits = tenant.bytes().fold(String::new(), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        });
        format!(
            "SELECT set_config('perihelion.all_tenants', '{all}', false), \
             set_config('perihelion.tenant', convert_from(decode('{digits}', 'hex'), 'UTF8'), false)"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Acting;

    #[test]
    fn a_name_cannot_leave_its_place() {
        let setting = Acting::Tenant("a'; --".into()).setting();
        assert!(setting.contains("decode('61273b202d2d', 'hex')"), "{setting}");
    }
}
