//! The result of every proof of identity.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What somebody may do; each scope stands for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// See threads, traces and what agents know.
    Read,
    /// Begin and continue runs, and answer questions that agents ask.
    Run,
    /// Approve and deny calls.
    Approve,
    /// Change agents, teams, users and keys.
    Manage,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 4] = [Self::Read, Self::Run, Self::Approve, Self::Manage];

    /// Returns the word that it is written as.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Approve => "approve",
            Self::Manage => "manage",
        }
    }

    /// Reads the word that it is written as.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// How somebody proved who they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProvedBy {
    /// Nothing: a service without authentication, reachable from this machine alone.
    Loopback,
    Key {
        id: Uuid,
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
}
