//! Where something lies, and so who can find it.

use crate::Error;

/// A tenant and an owner within it: a user, an agent, a team, or the tenant itself under a name of the caller's choice.
///
/// There is no default and no wildcard: a lookup without a scope does not compile, one with an empty name is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    tenant: String,
    owner: String,
}

impl Scope {
    /// Names a scope.
    ///
    /// # Errors
    /// [`Error::Nobody`] when one of the two is empty.
    pub fn new(tenant: impl Into<String>, owner: impl Into<String>) -> Result<Self, Error> {
        let tenant = tenant.into();
        let owner = owner.into();
        if tenant.trim().is_empty() || owner.trim().is_empty() {
            Err(Error::Nobody)
        } else {
            Ok(Self { tenant, owner })
        }
    }

    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    pub fn owner(&self) -> &str {
        &self.owner
    }
}
