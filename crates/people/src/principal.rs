//! The result of every proof of identity.

use perihelion_database::stored_words;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Error;

stored_words! {
    /// What somebody may do; each scope stands for itself.
    Scope {
        /// See threads, traces and what agents know.
        Read = "read",
        /// Begin and continue runs, and answer questions that agents ask.
        Run = "run",
        /// Approve and deny calls.
        Approve = "approve",
        /// Change agents, teams, users and keys.
        Manage = "manage",
        /// Work in the name of users, whom each request names: for a backend that knows its own.
        ActAs = "act_as",
        /// See what the runs of every tenant took: for who runs the service.
        Operate = "operate",
    }
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Run, Self::Approve, Self::Manage, Self::ActAs, Self::Operate];
}

/// How somebody proved who they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProvedBy {
    /// Nothing: a service without authentication, reachable from this machine alone.
    Loopback,
    Key {
        id: Uuid,
        /// The user whose key it is, if anybody's.
        owner: Option<String>,
    },
    Session,
    /// A token of another issuer.
    Token,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    pub tenant: String,
    /// The name of the user, or of the key where it belongs to none.
    pub user: String,
    pub scopes: Vec<Scope>,
    pub proved_by: ProvedBy,
}

impl Principal {
    /// Returns who asks where nobody has to prove anything.
    pub fn loopback(tenant: &str) -> Self {
        Self {
            tenant: tenant.to_owned(),
            user: "local".to_owned(),
            scopes: Scope::ALL.to_vec(),
            proved_by: ProvedBy::Loopback,
        }
    }

    /// Tells whether something is permitted.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Returns the user who asks; none where a program does, by a key of nobody's.
    pub fn person(&self) -> Option<&str> {
        match &self.proved_by {
            ProvedBy::Loopback => None,
            ProvedBy::Key { owner, .. } => owner.as_deref(),
            ProvedBy::Session | ProvedBy::Token => Some(&self.user),
        }
    }

    /// Tells whether they may work in the name of users; a user never may, whatever their scopes.
    pub fn may_act_as_users(&self) -> bool {
        self.person().is_none() && self.may(Scope::ActAs)
    }

    /// Decides in whose name they work where a request names `named`: a user in their own, a program in nobody's
    /// or, with the scope for it, in that of the user it names.
    ///
    /// # Errors
    /// [`Error::NotThem`].
    pub fn acting_as(&self, named: Option<&str>) -> Result<Option<String>, Error> {
        let named = named.map(str::trim).filter(|name| !name.is_empty());
        let own = self.person();
        match named {
            None => Ok(own.map(str::to_owned)),
            Some(name) if own == Some(name) || self.may_act_as_users() => Ok(Some(name.to_owned())),
            Some(name) => Err(Error::NotThem(name.to_owned())),
        }
    }
}
