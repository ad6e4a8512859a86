//! The result of every proof of identity.

use perihelion_database::stored_words;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Error, Result};

stored_words! {
    /// The permissions of a caller; scopes are independent.
    Scope {
        /// See threads, traces, skills and memories.
        Read = "read",
        /// Begin and continue runs, and answer questions that agents ask.
        Run = "run",
        /// Approve and deny calls.
        Approve = "approve",
        /// Change agents, teams, users and keys.
        Manage = "manage",
        /// Work in the name of users, whom each request names: for a backend that knows its own.
        ActAs = "act_as",
        /// See the usage of every tenant's runs, for the operator of the service.
        Operate = "operate",
    }
}

impl Scope {
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Run, Self::Approve, Self::Manage, Self::ActAs, Self::Operate];
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProvedBy {
    /// None: a service without authentication, reachable from this machine alone.
    Loopback,
    Key {
        id: Uuid,
        /// The user of the key, if it has one.
        owner: Option<String>,
    },
    Session,
    /// A token of another issuer.
    Token,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    pub tenant: String,
    /// The name of the user, or of a key without one.
    pub user: String,
    pub scopes: Vec<Scope>,
    pub proved_by: ProvedBy,
}

impl Principal {
    /// Returns the caller of a service without authentication.
    pub fn loopback(tenant: &str) -> Self {
        Self {
            tenant: tenant.to_owned(),
            user: "local".to_owned(),
            scopes: Scope::ALL.to_vec(),
            proved_by: ProvedBy::Loopback,
        }
    }

    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Returns the user of the caller; `None` for a program with a key without a user.
    pub fn person(&self) -> Option<&str> {
        match &self.proved_by {
            ProvedBy::Loopback => None,
            ProvedBy::Key { owner, .. } => owner.as_deref(),
            ProvedBy::Session | ProvedBy::Token => Some(&self.user),
        }
    }

    /// Returns whether the caller can act on behalf of users; a user never can, with any scopes.
    pub fn may_act_as_users(&self) -> bool {
        self.person().is_none() && self.may(Scope::ActAs)
    }

    /// Decides on whose behalf a caller works if a request names `named`: a user for themselves; a program for no user
    /// or, with the scope for it, for the named one.
    ///
    /// # Errors
    /// [`Error::NotThem`].
    pub fn acting_as(&self, named: Option<&str>) -> Result<Option<String>> {
        let named = named.map(str::trim).filter(|name| !name.is_empty());
        let own = self.person();
        match named {
            None => Ok(own.map(str::to_owned)),
            Some(name) if own == Some(name) || self.may_act_as_users() => Ok(Some(name.to_owned())),
            Some(name) => Err(Error::NotThem(name.to_owned())),
        }
    }
}
