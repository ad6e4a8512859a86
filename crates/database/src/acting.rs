//! For whom statements act: row-level security below every question.
//!
//! Each statement names its tenant in its `WHERE`; on Postgres every table with tenants' rows holds it to that as well. Their
//! policies (`of_tenant`, forced upon the tables' owner, too) compare a row's tenant with the setting `perihelion.tenant`, which a
//! transaction of [`crate::Database::of_tenant`] sets for itself and for no other: nothing stays on the connection. Where nothing is
//! set no row is seen and none can be written: a forgotten `WHERE` returns nothing. Rows of a thread (`of_thread`) are seen where the
//! thread is.
//!
//! Anyone who looks after all tenants (sweeps, pruning, finding whose key it is that was shown) says so by
//! [`crate::Database::of_all_tenants`], which sets `perihelion.all_tenants`. The engine's store acts for all on connections of its
//! own ([`crate::postgres::Connections::of_all_tenants`]), so that a commit stays one statement and one round trip: it addresses
//! threads by ids, whose tenant those above it compare. A transaction of a tenant takes that back, in case a pool in between lends
//! it the same connection. Superusers and roles with `BYPASSRLS` are exempt from every policy ([`crate::Database::is_exempt`]);
//! SQLite has no policies.

use std::fmt::Write as _;
use std::sync::Arc;

/// For whom the statements of a handle act.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Acting {
    /// Tables with policies show nothing.
    #[default]
    Nobody,
    Tenant(Arc<str>),
    All,
}

impl Acting {
    /// Returns what begins a transaction that acts so, in one message; none where a plain one does.
    pub(crate) fn begin(&self) -> Option<String> {
        match self {
            Self::Nobody => None,
            // As digits, so that no setting of the server decides how it is read.
            Self::Tenant(tenant) => {
                // No tenant's name holds what the server cannot keep.
                let tenant = if tenant.contains('\0') { "" } else { tenant };
                let digits = tenant.bytes().fold(String::new(), |mut digits, byte| {
                    let _ = write!(digits, "{byte:02x}");
                    digits
                });
                Some(format!(
                    "BEGIN; SELECT set_config('perihelion.all_tenants', 'off', true), \
                     set_config('perihelion.tenant', convert_from(decode('{digits}', 'hex'), 'UTF8'), true)"
                ))
            }
            Self::All => {
                Some("BEGIN; SELECT set_config('perihelion.all_tenants', 'on', true)".to_owned())
            }
        }
    }

    /// Returns what begins a transaction that acts so, only reads, and sees the database as it is at one moment.
    pub(crate) fn begin_reading(&self) -> String {
        let of_one_moment = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        match self.begin() {
            None => of_one_moment.to_owned(),
            Some(begin) => begin.replacen("BEGIN", of_one_moment, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Acting;

    #[test]
    fn a_name_cannot_leave_its_place() {
        let begin = Acting::Tenant("a'; --".into()).begin().unwrap();
        assert!(begin.contains("decode('61273b202d2d', 'hex')"), "{begin}");
        assert_eq!(Acting::Nobody.begin(), None);
    }
}
